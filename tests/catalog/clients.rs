//! What the clients of the profiles list, against what the clients themselves listed when they were run.
//!
//! The recordings are in `SKILLS_TEST_DATA`: names and lengths of 120 skills that `scenarios.py` there makes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use skills_api::{
    BudgetView, CheckKind, CheckResult, Client as _, ClientViewState, CoreParts, DraftRequest, Local,
    SessionClient as _, Visibility, VisibilityCell, VisibilityRequest, WhyReport, WhyRequest, visibility,
    why,
};
use skills_config::{Config, Env};
use skills_session::Truncation;

/// A home folder and a repository, at a path of a chosen length: some clients count it.
struct Scene {
    _dir: tempfile::TempDir,
    out: PathBuf,
}

/// Length of the repository's path in characters. `OpenClaw` counts the paths of its entries, and the recording does
/// not contain them. The recorded size of Codex' block for three skills gives this length; with it and the default
/// location of its own skills, the list of `OpenClaw` has the recorded number of entries.
const PATH_LENGTH: usize = 39;

impl Scene {
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("s").rand_bytes(6).tempdir_in("/tmp").unwrap();
        let base = dir.path().canonicalize().unwrap();
        let remaining = PATH_LENGTH - "/repo".len() - base.as_os_str().len() - 1;
        let out = base.join("x".repeat(remaining));
        fs::create_dir_all(out.join("home")).unwrap();
        fs::create_dir_all(out.join("repo/.git")).unwrap();
        Self { _dir: dir, out }
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.out.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn skill(&self, path: &str, name: &str, description: &str) {
        self.write(
            &format!("{path}/SKILL.md"),
            format!("---\nname: {name}\ndescription: {description}\n---\n# {name}\n\nBODY\n"),
        );
    }

    fn config(&self, cwd: &str) -> Config {
        let mut config = Config::defaults(&self.out.join(cwd), &Env::at(self.out.join("home")));
        config.repository = Some(self.out.join("repo"));
        config.store = Some("memory:".to_owned());
        config
    }

    async fn core(&self, cwd: &str) -> Local {
        Local::open_once(self.config(cwd), CoreParts::Catalog).await.unwrap()
    }

    /// Opens the core in `repo` with `--root`.
    async fn core_at_root(&self, root: &str) -> Local {
        let config = Config { argument_roots: vec![self.out.join(root)], ..self.config("repo") };
        Local::open_once(config, CoreParts::Catalog).await.unwrap()
    }

    async fn budget(&self, client: &str, cwd: &str, window: Option<u32>) -> BudgetView {
        self.core(cwd).await.budget(Some(client), window).await.unwrap()
    }

    /// Names of the listed skills, without those that the client brings itself.
    async fn names(&self, client: &str, cwd: &str) -> Vec<String> {
        let view = self.budget(client, cwd, None).await;
        view.allowance.included().filter(|entry| !entry.bundled).map(|entry| entry.name.clone()).collect()
    }
}

#[derive(Deserialize)]
struct Recorded {
    window: Option<u32>,
    bundled_listed: usize,
    names_only_in_closing_line: Option<usize>,
    rows: Vec<RecordedRow>,
}

#[derive(Deserialize)]
struct RecordedRow {
    name: String,
    description: String,
    characters: usize,
}

/// The entries in the list, with how much of each description: name, length, whether it is the client's own.
fn listed(view: &BudgetView) -> Vec<(String, usize, bool)> {
    let in_list = |shown: &Truncation| match shown {
        Truncation::NameOnly { why } => !why.contains("only its name is listed"),
        Truncation::Omitted { .. } => false,
        _ => true,
    };
    let entries = view.allowance.entries.iter().filter(|(_, shown)| in_list(shown));
    entries.map(|(entry, _)| (entry.name.clone(), entry.description.chars().count(), entry.bundled)).collect()
}

#[tokio::test]
async fn lists_of_six_clients_match_their_recordings() {
    let Some(data) = std::env::var_os("SKILLS_TEST_DATA").map(PathBuf::from) else {
        println!("SKIPPED: SKILLS_TEST_DATA is not set, no recording of a client was compared");
        return;
    };
    let clients = [
        ("claude-code", "2.1.330", ".claude/skills"),
        ("codex", "0.169.0", ".agents/skills"),
        ("copilot", "1.0.102", ".agents/skills"),
        ("gemini-cli", "0.61.0", ".agents/skills"),
        ("openclaw", "2026.9.6", ".agents/skills"),
        ("opencode", "1.18.33", ".agents/skills"),
    ];
    let mut wrong = BTreeMap::new();
    for (client, version, folder) in clients {
        let text = fs::read_to_string(data.join(format!("clients/{client}-{version}.json"))).unwrap();
        let recorded: Recorded = serde_json::from_str(&text).unwrap();
        let scene = Scene::new();
        make_scenario(&data.join("clients/scenarios.py"), &scene.out, "many", folder);
        let view = scene.budget(client, "repo", recorded.window).await;
        assert_eq!(view.version.as_deref(), Some(version));
        let ours = listed(&view);
        let theirs: Vec<&RecordedRow> = recorded.rows.iter().collect();
        let names = |rows: Vec<&str>| rows.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let our_names = names(ours.iter().map(|(name, ..)| name.as_str()).collect());
        let their_names = names(theirs.iter().map(|row| row.name.as_str()).collect());
        let lengths = ours
            .iter()
            .zip(&theirs)
            .filter(|((name, length, bundled), row)| {
                *name == row.name && *length == row.characters && *bundled == (row.description == "bundled")
            })
            .count();
        let bundled = ours.iter().filter(|(.., bundled)| *bundled).count();
        println!(
            "{client} {version}: {} listed, {} recorded; names and order {}; {lengths} of {} with the recorded length",
            ours.len(),
            theirs.len(),
            if our_names == their_names { "equal" } else { "differ" },
            theirs.len(),
        );
        // Codex hands out its last tokens otherwise. Gemini CLI reads files at the same time: in the recording three
        // neighbors of 120 are swapped, which is not a rule.
        let (least, in_order) = match client {
            "codex" => (120, our_names == their_names),
            "gemini-cli" => (theirs.len() - 2, sorted(&our_names) == sorted(&their_names)),
            _ => (theirs.len(), our_names == their_names),
        };
        if !in_order || lengths < least || bundled != recorded.bundled_listed {
            wrong.insert(client, (our_names, their_names, lengths, bundled));
        }
        if let Some(named) = recorded.names_only_in_closing_line {
            assert_eq!(view.allowance.entries.len() - ours.len(), named, "{client}: the closing line");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn sorted(names: &[String]) -> Vec<&String> {
    let mut names: Vec<&String> = names.iter().collect();
    names.sort();
    names
}

fn make_scenario(script: &Path, out: &Path, name: &str, primary: &str) {
    let mut python = Command::new("python3");
    python.arg(script).arg(out).args([name, "--primary", primary]);
    let made = python.output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// The defects, each with what the six clients make of it: Codex, Gemini CLI, `OpenCode`, `OpenClaw`, Copilot, Claude
/// Code. `+` lists it, `-` does not, anything else is the name that it uses.
const DEFECTS: &[(&str, &str, [&str; 6])] = &[
    ("arghint", "---\nname: arghint\ndescription: D.\nargument-hint: \"[file]\"\n---\nB\n", ["+"; 6]),
    ("blankdesc", "---\nname: blankdesc\ndescription: \"   \"\n---\nB\n", ["-", "+", "+", "-", "+", "+"]),
    ("blankfirst", "\n---\nname: blankfirst\ndescription: D.\n---\nB\n", ["-", "-", "-", "-", "-", "+"]),
    ("bom", "\u{feff}---\nname: bom\ndescription: D.\n---\nB\n", ["-", "-", "+", "+", "+", "+"]),
    ("boolname", "---\nname: true\ndescription: D.\n---\nB\n", ["true", "true", "-", "true", "-", "+"]),
    ("colon", "---\nname: colon\ndescription: Use when: so\n---\nB\n", ["+", "+", "+", "+", "-", "+"]),
    ("colonend", "---\nname: colonend\ndescription: Ends so:\n---\nB\n", ["-", "+", "+", "+", "-", "+"]),
    (
        "colonname",
        "---\nname: ns:name\ndescription: D.\n---\nB\n",
        ["ns:name", "ns-name", "ns:name", "ns:name", "ns:name", "+"],
    ),
    ("crlf", "---\r\nname: crlf\r\ndescription: D.\r\n---\r\nB\r\n", ["+"; 6]),
    (
        "dmi",
        "---\nname: dmi\ndescription: D.\ndisable-model-invocation: true\n---\nB\n",
        ["+", "+", "+", "-", "-", "-"],
    ),
    (
        "dmiquoted",
        "---\nname: dmiquoted\ndescription: D.\ndisable-model-invocation: \"true\"\n---\nB\n",
        ["+", "+", "+", "-", "-", "-"],
    ),
    (
        "dmiyes",
        "---\nname: dmiyes\ndescription: D.\ndisable-model-invocation: yes\n---\nB\n",
        ["+", "+", "+", "-", "-", "-"],
    ),
    (
        "dupkey",
        "---\nname: dupkey\ndescription: A.\ndescription: B.\n---\nB\n",
        ["-", "+", "-", "-", "-", "+"],
    ),
    ("emptydesc", "---\nname: emptydesc\ndescription: \"\"\n---\nB\n", ["-", "+", "+", "-", "+", "+"]),
    ("emptyfile", "", ["-", "-", "-", "-", "-", "+"]),
    ("emptyname", "---\nname: \"\"\ndescription: D.\n---\nB\n", ["+", "", "", "+", "-", "+"]),
    ("fencespace", "---  \nname: fencespace\ndescription: D.\n---  \nB\n", ["+", "-", "+", "+", "+", "+"]),
    (
        "folder-x",
        "---\nname: name-y\ndescription: D.\n---\nB\n",
        ["name-y", "name-y", "name-y", "name-y", "name-y", "+"],
    ),
    ("indented", "---\n  name: indented\n  description: D.\n---\nB\n", ["+"; 6]),
    ("listdesc", "---\nname: listdesc\ndescription: [a, b]\n---\nB\n", ["-", "+", "-", "+", "-", "+"]),
    ("noclose", "---\nname: noclose\ndescription: D.\n\nBODY\n", ["-", "-", "-", "-", "-", "+"]),
    ("nodesc", "---\nname: nodesc\n---\nBODY first\n", ["-", "-", "-", "-", "+", "+"]),
    ("nofront", "# nofront\n\nNo frontmatter.\n", ["-", "-", "-", "-", "-", "+"]),
    ("noname", "---\ndescription: D.\n---\nB\n", ["+", "-", "-", "+", "+", "+"]),
    ("notuser", "---\nname: notuser\ndescription: D.\nuser-invocable: false\n---\nB\n", ["+"; 6]),
    ("nulldesc", "---\nname: nulldesc\ndescription: null\n---\nB\n", ["-", "+", "-", "+", "-", "+"]),
    ("numdesc", "---\nname: numdesc\ndescription: 42\n---\nB\n", ["+", "+", "-", "+", "-", "+"]),
    ("numname", "---\nname: 123\ndescription: D.\n---\nB\n", ["123", "123", "-", "123", "-", "+"]),
    (
        "paths",
        "---\nname: paths\ndescription: D.\npaths: \"**/*.zzz\"\n---\nB\n",
        ["+", "+", "+", "+", "+", "-"],
    ),
    ("plainmulti", "---\nname: plainmulti\ndescription: One\n  two\n---\nB\n", ["+"; 6]),
    (
        "space",
        "---\nname: with space\ndescription: D.\n---\nB\n",
        ["with space", "with space", "with space", "with space", "with-space", "+"],
    ),
    (
        "tabindent",
        "---\nname: tabindent\ndescription: D.\nmetadata:\n\tkey: value\n---\nB\n",
        ["-", "+", "+", "-", "-", "+"],
    ),
    ("tabs", "---\nname:\ttabs\ndescription:\tD.\n---\nB\n", ["+"; 6]),
    (
        "under",
        "---\nname: under_score\ndescription: D.\n---\nB\n",
        ["under_score", "under_score", "under_score", "under_score", "under_score", "+"],
    ),
    (
        "uni",
        "---\nname: naïve-日本\ndescription: D.\n---\nB\n",
        ["naïve-日本", "naïve-日本", "naïve-日本", "naïve-日本", "-", "+"],
    ),
    (
        "upper",
        "---\nname: Upper-Case\ndescription: D.\n---\nB\n",
        ["Upper-Case", "Upper-Case", "Upper-Case", "Upper-Case", "Upper-Case", "+"],
    ),
];

const SIX: [(&str, &str); 6] = [
    ("codex", ".agents/skills"),
    ("gemini-cli", ".agents/skills"),
    ("opencode", ".agents/skills"),
    ("openclaw", ".agents/skills"),
    ("copilot", ".agents/skills"),
    ("claude-code", ".claude/skills"),
];

#[tokio::test]
async fn malformed_files_are_handled_like_each_client() {
    let mut wrong = Vec::new();
    for (at, (client, folder)) in SIX.into_iter().enumerate() {
        let scene = Scene::new();
        for (name, text, _) in DEFECTS {
            scene.write(&format!("repo/{folder}/{name}/SKILL.md"), text);
        }
        let long = |length: usize| "x".repeat(length);
        scene.write(
            &format!("repo/{folder}/latin1/SKILL.md"),
            b"---\nname: latin1\ndescription: caf\xe9.\n---\nB\n",
        );
        for (name, length, body) in
            [("big300k", 10, 300_000), ("big1100k", 10, 1_100_000), ("desc1025", 1025, 1)]
        {
            let text = format!("---\nname: {name}\ndescription: {}\n---\n{}\n", long(length), long(body));
            scene.write(&format!("repo/{folder}/{name}/SKILL.md"), text);
        }
        let (long64, long65) = ("n".repeat(64), "m".repeat(65));
        scene.skill(&format!("repo/{folder}/{long64}"), &long64, "D.");
        scene.skill(&format!("repo/{folder}/{long65}"), &long65, "D.");
        scene.skill(&format!("repo/{folder}/openaiyaml"), "openaiyaml", "D.");
        let path_of_file = format!("repo/{folder}/openaiyaml/agents/openai.yaml");
        scene.write(&path_of_file, "policy:\n  allow_implicit_invocation: false\n");
        let names = scene.names(client, "repo").await;
        let others: [(&str, [&str; 6]); 7] = [
            ("latin1", ["-", "+", "+", "+", "+", "+"]),
            ("big300k", ["+", "+", "+", "-", "+", "+"]),
            ("big1100k", ["+", "+", "+", "-", "-", "-"]),
            ("desc1025", ["+", "+", "+", "+", "-", "+"]),
            (&long64, ["+"; 6]),
            (&long65, ["-", "+", "+", "+", "-", "+"]),
            ("openaiyaml", ["-", "+", "+", "+", "+", "+"]),
        ];
        let defects = DEFECTS.iter().map(|(name, _, wanted)| (*name, wanted[at]));
        let mut wanted: Vec<String> = defects
            .chain(others.iter().map(|(name, wanted)| (*name, wanted[at])))
            .filter(|(_, wanted)| *wanted != "-")
            .map(|(name, wanted)| if wanted == "+" { name } else { wanted }.to_owned())
            .collect();
        let mut ours = names;
        ours.sort();
        wanted.sort();
        for name in ours.iter().filter(|name| !wanted.contains(name)) {
            wrong.push(format!("{client} does not list {name:?}"));
        }
        for name in wanted.iter().filter(|name| !ours.contains(name)) {
            wrong.push(format!("{client} lists {name:?}"));
        }
        println!(
            "{client}: {} of {} defects as recorded",
            DEFECTS.len() + others.len(),
            DEFECTS.len() + others.len()
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn descriptions_are_formatted_like_each_client() {
    let scene = Scene::new();
    let folded = "---\nname: folded\ndescription: >\n  One line\n  and another.\n\n  A paragraph.\n---\nB\n";
    for folder in [".agents/skills", ".claude/skills"] {
        scene.write(&format!("repo/{folder}/folded/SKILL.md"), folded);
        scene.write(
            &format!("repo/{folder}/when/SKILL.md"),
            "---\nname: when\ndescription: Has more.\nwhen_to_use: When needed.\n---\nB\n",
        );
        for (name, fields) in [
            ("when-empty", "description: Has more.\nwhen_to_use: \"\""),
            ("when-number", "description: Has more.\nwhen_to_use: 7"),
            ("when-lines", "description: \"a  b \\n\\n  c\"\nwhen_to_use: \" d \\n\\n  e\\r\\nf\\tg\\n\""),
            ("when-alone", "when_to_use: When needed."),
            ("brackets", &format!("description: {}", "<".repeat(500))),
        ] {
            let text = format!("---\nname: {name}\n{fields}\n---\n# Head\n");
            scene.write(&format!("repo/{folder}/{name}/SKILL.md"), &text);
        }
        scene.write(
            &format!("repo/{folder}/head/SKILL.md"),
            "---\nname: head\ndescription: Ends so:\n---\n\n# The heading\n\nText\n",
        );
        scene.skill(&format!("repo/{folder}/tag"), "tag", "\"<b>x</b>\"");
        scene.skill(&format!("repo/{folder}/long"), "long", &"y".repeat(1537));
    }
    let described = async |client: &str, name: &str| {
        let view = scene.budget(client, "repo", Some(10_000_000)).await;
        let entry = view.allowance.included().find(|entry| entry.name == name && !entry.bundled);
        entry.map(|entry| entry.description.clone()).unwrap_or_default()
    };
    assert_eq!(described("codex", "folded").await, "One line and another. A paragraph.");
    assert_eq!(described("gemini-cli", "folded").await, "One line and another.\nA paragraph.\n");
    assert_eq!(described("copilot", "folded").await, "One line and another.\nA paragraph.");
    assert_eq!(described("claude-code", "when").await, "Has more. - When needed.");
    assert_eq!(described("claude-code", "when-empty").await, "Has more.");
    assert_eq!(described("claude-code", "when-number").await, "Has more. - 7");
    assert_eq!(described("claude-code", "when-lines").await, "a  b    c -  d    e f g ");
    assert_eq!(described("claude-code", "when-alone").await, "Head - When needed.");
    let brackets = described("claude-code", "brackets").await;
    assert!(brackets.ends_with("&lt…") && brackets.chars().count() == 1536, "{}", brackets.len());
    assert_eq!(described("claude-code", "head").await, "The heading");
    assert_eq!(described("claude-code", "tag").await, "&lt;b&gt;x&lt;/b&gt;");
    assert_eq!(described("gemini-cli", "tag").await, "<b>x</b>");
    let codex = described("codex", "long").await;
    assert!(codex.ends_with("y...") && codex.len() == 1024, "{}", codex.len());
    let claude = described("claude-code", "long").await;
    assert!(claude.ends_with("y…") && claude.chars().count() == 1536, "{}", claude.chars().count());
    assert_eq!(described("openclaw", "long").await.len(), 1537, "there is room for it");
}

#[tokio::test]
async fn search_depth_and_links_match_each_client() {
    for (client, folder) in SIX {
        let scene = Scene::new();
        let top = format!("repo/{folder}");
        for depth in 1..=8 {
            scene.skill(&format!("{top}{}/d{depth}", "/g".repeat(depth - 1)), &format!("d{depth}"), "D.");
        }
        scene.skill(&format!("{top}/.hid/hidden"), "hidden", "D.");
        scene.skill(&format!("{top}/.hiddenskill"), "hiddenskill", "D.");
        scene.skill(&format!("{top}/node_modules/nodemod"), "nodemod", "D.");
        scene.write(&format!("{top}/lower/skill.md"), "---\nname: lower\ndescription: D.\n---\nB\n");
        scene.skill("repo/elsewhere/linked-in", "linked-in", "D.");
        scene.skill("far/linked-out", "linked-out", "D.");
        scene.skill("far/linked-group/linked-deep", "linked-deep", "D.");
        scene.write("far/file.md", "---\nname: linked-file\ndescription: D.\n---\nB\n");
        let link = |target: &str, at: &str| {
            std::os::unix::fs::symlink(scene.out.join(target), scene.out.join(format!("{top}/{at}")))
                .unwrap();
        };
        link("repo/elsewhere/linked-in", "linked-in");
        link("far/linked-out", "linked-out");
        link("far/linked-group", "linked-group");
        fs::create_dir_all(scene.out.join(format!("{top}/linked-file"))).unwrap();
        link("far/file.md", "linked-file/SKILL.md");
        std::os::unix::fs::symlink("..", scene.out.join(format!("{top}/g/up"))).unwrap();
        let mut names = scene.names(client, "repo").await;
        names.sort();
        let wanted = match client {
            "codex" => "d1 d2 d3 d4 d5 d6 linked-deep linked-in linked-out nodemod",
            "gemini-cli" => "d1 linked-file linked-in linked-out",
            "opencode" => {
                "d1 d2 d3 d4 d5 d6 d7 d8 hidden hiddenskill linked-deep linked-file linked-in linked-out nodemod"
            }
            "openclaw" => "d1 d2 d3 d4 d5 d6",
            "copilot" => "d1 d2 d3 d4 d5 d6 d7 d8 linked-deep linked-file linked-in linked-out nodemod",
            _ => ".hiddenskill d1 linked-file linked-in linked-out",
        };
        assert_eq!(names.join(" "), wanted, "{client}");
    }
}

#[tokio::test]
async fn listed_skills_missing_from_the_catalog_are_reported() {
    let scene = Scene::new();
    scene.skill("far/out", "out", "From a checkout.");
    scene.skill("repo/skills/own", "own", "Of the workspace.");
    scene.skill("home/.openclaw/skills/own", "own", "Of the person.");
    fs::create_dir_all(scene.out.join("home/.claude/skills")).unwrap();
    std::os::unix::fs::symlink(scene.out.join("far/out"), scene.out.join("home/.claude/skills/out")).unwrap();
    let core = scene.core("repo").await;
    let claude = core.client_view("claude-code").await.unwrap();
    let state =
        claude.entries.iter().find(|entry| entry.skill_id.as_str() == "out").map(|entry| &entry.state);
    assert_eq!(state, Some(&ClientViewState::Found), "a refused link is listed by a client that follows it");
    assert_eq!(claude.list.entries[0].0.description, "From a checkout.");
    let openclaw = core.client_view("openclaw").await.unwrap();
    let state =
        openclaw.entries.iter().find(|entry| entry.skill_id.as_str() == "own").map(|entry| &entry.state);
    assert_eq!(state, Some(&ClientViewState::Shadowed(scene.out.join("repo/skills/own/SKILL.md"))));
    // The list of a client, its budget and what a session is given are one.
    for client in core.client_profiles().await.unwrap() {
        let view = core.client_view(&client.0).await.unwrap();
        let budget = core.budget(Some(&client.0), None).await.unwrap();
        assert_eq!(view.list, budget.allowance, "{}", client.0);
        assert_eq!(view.not_listed, budget.not_listed, "{}", client.0);
    }
}

#[tokio::test]
async fn precedence_of_names_matches_each_client() {
    let scene = Scene::new();
    for (folder, name) in [
        ("repo/.agents/skills/b-within", "within"),
        ("repo/.agents/skills/a-within", "within"),
        ("repo/.agents/skills/c-within", "within"),
        ("repo/.agents/skills/twice", "twice"),
        ("home/.agents/skills/twice", "twice"),
        // Only OpenCode reads this folder.
        ("repo/.agents/skills/node_modules/first", "outside"),
        ("repo/.agents/skills/outside", "outside"),
    ] {
        scene.skill(folder, name, &format!("from {folder}"));
    }
    let from = async |client: &str, name: &str| {
        let view = scene.budget(client, "repo", None).await;
        let entries = view.allowance.included().filter(|entry| entry.name == name);
        entries.map(|entry| entry.description.replace("from ", "")).collect::<Vec<_>>()
    };
    assert_eq!(from("gemini-cli", "within").await, ["repo/.agents/skills/a-within"]);
    assert_eq!(from("copilot", "within").await, ["repo/.agents/skills/a-within"]);
    assert_eq!(from("openclaw", "within").await, ["repo/.agents/skills/c-within"]);
    assert_eq!(from("codex", "twice").await, ["repo/.agents/skills/twice", "home/.agents/skills/twice"]);
    assert_eq!(from("gemini-cli", "twice").await, ["repo/.agents/skills/twice"]);
    assert_eq!(from("opencode", "within").await.len(), 1, "one of the three");
    assert_eq!(from("opencode", "outside").await, ["repo/.agents/skills/outside"], "the copy in the catalog");
    let view = scene.core("repo").await.client_view("opencode").await.unwrap();
    let either = view.entries.iter().filter(|entry| matches!(&entry.state, ClientViewState::Either(_)));
    assert_eq!(either.count(), 6, "each copy is said to be undefined: {:?}", view.entries);
    // A name keeps the place of the copy that came first, which is the weakest.
    let gemini = scene.names("gemini-cli", "repo").await;
    assert_eq!(gemini, ["twice", "outside", "within"]);
}

#[cfg(unix)]
#[tokio::test]
async fn two_links_to_one_file_are_one_skill_in_opencode() {
    let scene = Scene::new();
    scene.skill("checkout/linked", "linked", "Reads PDF files.");
    for folder in ["repo/.claude/skills", "repo/.agents/skills"] {
        fs::create_dir_all(scene.out.join(folder)).unwrap();
        let link = scene.out.join(folder).join("linked");
        std::os::unix::fs::symlink(scene.out.join("checkout/linked"), link).unwrap();
    }
    let view = scene.core("repo").await.client_view("opencode").await.unwrap();
    assert_eq!(view.list.entries.iter().filter(|(entry, _)| entry.name == "linked").count(), 1);
    let either = view.entries.iter().filter(|entry| matches!(&entry.state, ClientViewState::Either(_)));
    assert_eq!(either.count(), 0, "{:?}", view.entries);
}

#[cfg(unix)]
#[tokio::test]
async fn two_bundles_with_one_linked_text_are_one_skill_in_opencode() {
    let scene = Scene::new();
    let text = "---\nname: linked\ndescription: Reads PDF files.\n---\nBODY\n";
    scene.write("repo/.claude/skills/shared/linked.md", text);
    for (folder, target) in [
        ("repo/.claude/skills/linked", "../shared/linked.md"),
        ("repo/.agents/skills/linked", "../../../.claude/skills/shared/linked.md"),
    ] {
        fs::create_dir_all(scene.out.join(folder)).unwrap();
        std::os::unix::fs::symlink(target, scene.out.join(folder).join("SKILL.md")).unwrap();
    }
    let view = scene.core("repo").await.client_view("opencode").await.unwrap();
    assert_eq!(view.list.entries.iter().filter(|(entry, _)| entry.name == "linked").count(), 1);
    let either = view.entries.iter().filter(|entry| matches!(&entry.state, ClientViewState::Either(_)));
    assert_eq!(either.count(), 0, "{:?}", view.entries);
    let skills = view.entries.iter().filter(|entry| entry.skill_id.as_str().starts_with("linked"));
    assert_eq!(skills.count(), 2, "{:?}", view.entries);
}

#[tokio::test]
async fn claude_code_and_copilot_search_parent_folders_in_order() {
    let scene = Scene::new();
    fs::create_dir_all(scene.out.join("repo/pk/app")).unwrap();
    for folder in ["home/.claude", "repo/.claude", "repo/pk/.claude", "repo/pk/app/.claude"] {
        scene.skill(&format!("{folder}/skills/{}", folder.replace(['/', '.'], "-")), "any", "D.");
        scene.skill(&format!("{folder}/skills/same"), "same", &format!("from {folder}"));
    }
    let names = scene.names("claude-code", "repo/pk/app").await;
    assert_eq!(names, ["home--claude", "same", "repo-pk-app--claude", "repo-pk--claude", "repo--claude"]);
    let view = scene.budget("claude-code", "repo/pk/app", None).await;
    let titles: Vec<&str> = view.allowance.included().filter_map(|entry| entry.title.as_deref()).collect();
    assert_eq!(titles[0], "home--claude (any)");
    // Copilot uses the name in the frontmatter: the nearest folder wins, and no folder of Claude Code in the home.
    let copilot = scene.budget("copilot", "repo/pk/app", None).await;
    let same = copilot.allowance.included().find(|entry| entry.name == "same").unwrap();
    assert_eq!(same.description, "from repo/pk/app/.claude");
    let earlier = scene.names("claude-code@2.1.197", "repo/pk/app").await;
    assert_eq!(earlier.iter().filter(|name| *name == "same").count(), 4, "2.1.197 lists every copy");
}

/// Returns what every view shows about a skill in a client: the state, the column of the list, the visibility and the
/// result of the check.
async fn views_of(core: &Local, client: &str, skill: &str) -> (String, String, VisibilityCell, WhyReport) {
    let view = core.client_view(client).await.unwrap();
    let entry = view.entries.iter().find(|entry| entry.skill_id.as_str() == skill);
    let state = format!("{:?}", entry.map(|entry| &entry.state));
    let budget = core.budget(Some(client), None).await.unwrap();
    assert_eq!(view.list, budget.allowance, "the list is the budget's");
    let request = VisibilityRequest {
        skill: Some(skill.to_owned()),
        clients: vec![client.to_owned()],
        ..VisibilityRequest::default()
    };
    let row = visibility(core, &request).await.unwrap().skills[0].clone();
    let listed = view.listed(&row.skill_id, &row.location);
    let column = listed.map_or_else(|| "not listed".to_owned(), |(_, shown)| format!("{shown:?}"));
    let cell = row.cells[0].clone();
    let request = WhyRequest { skill_id: skill.to_owned(), intent: None, clients: vec![client.to_owned()] };
    (state, column, cell, why(core, &request).await.unwrap())
}

fn check(report: &WhyReport, kind: CheckKind) -> (CheckResult, &str, &str) {
    let check = report.clients[0].checks.iter().find(|check| check.check == kind).unwrap();
    (check.result, &check.evidence, check.help.as_deref().unwrap_or_default())
}

#[tokio::test]
async fn client_settings_apply_in_every_view() {
    let scene = Scene::new();
    for name in ["on", "name", "user", "off", "odd", "local"] {
        scene.skill(&format!("home/.claude/skills/{name}"), name, &format!("Does {name}."));
        scene.skill(&format!("home/.codex/skills/{name}"), name, &format!("Does {name}."));
    }
    scene.write(
        "home/.claude/settings.json",
        r#"{"model": "x", "skillOverrides": {"name": "name-only", "user": "user-invocable-only", "off": "off",
            "odd": 3, "local": "off"}}"#,
    );
    scene.write("repo/.claude/settings.local.json", r#"{"skillOverrides": {"local": "on"}}"#);
    let core = scene.core("repo").await;
    let (_, column, cell, report) = views_of(&core, "claude-code", "on").await;
    assert_eq!((column.as_str(), cell.state, report.wins), ("Complete", Visibility::Full, true));
    let (_, column, cell, report) = views_of(&core, "claude-code", "local").await;
    assert_eq!((column.as_str(), cell.state, report.wins), ("Complete", Visibility::Full, true));
    let (state, column, cell, report) = views_of(&core, "claude-code", "name").await;
    assert_eq!((state.as_str(), cell.state), ("Some(Found)", Visibility::NameOnly));
    let setting = "`skillOverrides: name-only` in ~/.claude/settings.json";
    assert!(column.contains("NameOnly") && column.contains(setting), "{column}");
    let (result, evidence, help) = check(&report, CheckKind::Description);
    assert_eq!((result, evidence), (CheckResult::Fail, &*format!("only the name is shown ({setting})")));
    assert!(help.contains(setting), "{help}");
    let (state, column, cell, report) = views_of(&core, "claude-code", "user").await;
    assert_eq!((column.as_str(), cell.state), ("not listed", Visibility::Manual));
    assert!(state.contains("ForPeople(\"`skillOverrides: user-invocable-only` in ~/.claude"), "{state}");
    assert_eq!(check(&report, CheckKind::Offered).0, CheckResult::Fail);
    let (state, column, cell, report) = views_of(&core, "claude-code", "off").await;
    assert_eq!((column.as_str(), cell.state), ("not listed", Visibility::Off));
    assert!(state.contains("TurnedOff(\"`skillOverrides: off` in ~/.claude/settings.json"), "{state}");
    assert_eq!(check(&report, CheckKind::Offered).0, CheckResult::Fail);
    let (state, column, cell, report) = views_of(&core, "claude-code", "odd").await;
    assert!(column.contains("Unknown"), "{column}");
    assert_eq!(cell.state, Visibility::Unknown);
    assert!(
        state.contains("`skillOverrides` has an unknown value for `odd` in ~/.claude/settings.json"),
        "{state}"
    );
    assert_eq!(check(&report, CheckKind::Offered).0, CheckResult::Unknown);

    let off = scene.out.join("home/.codex/skills/off/SKILL.md");
    scene.write(
        "home/.codex/config.toml",
        format!(
            "model = \"x\"\n[[skills.config]]\npath = {off:?}\nenabled = false\n[[skills.config]]\nname = \"local\"\n\
             enabled = false\n[[skills.config]]\nname = \"local\"\nenabled = true\n[skills.bundled]\nenabled = false\n"
        ),
    );
    let view = core.client_view("codex").await.unwrap();
    let listed: Vec<&str> = view.list.included().map(|entry| entry.name.as_str()).collect();
    assert_eq!(listed, ["local", "name", "odd", "on", "user"], "its own skills are off too");
    let ids = view.entries.iter().filter(|entry| matches!(entry.state, ClientViewState::TurnedOff(_)));
    let id = ids.map(|entry| entry.skill_id.to_string()).next().unwrap();
    let (state, _, cell, report) = views_of(&core, "codex", &id).await;
    assert!(state.contains("`[[skills.config]] enabled = false` in ~/.codex/config.toml"), "{state}");
    assert_eq!((cell.state, report.wins), (Visibility::Off, false));
}

#[tokio::test]
async fn unreadable_settings_make_availability_unknown() {
    let scene = Scene::new();
    scene.skill("home/.claude/skills/a", "a", "Does a.");
    scene.skill("home/.codex/skills/b", "b", "Does b.");
    scene.write("home/.claude/settings.json", "{\"skillOverrides\": {}, // a comment\n}");
    scene.write("home/.codex/config.toml", "[skills]\nconfig = 3\n");
    let core = scene.core("repo").await;
    for (client, skill, file) in
        [("claude-code", "a", "~/.claude/settings.json"), ("codex", "b", "~/.codex/config.toml")]
    {
        let (state, column, cell, report) = views_of(&core, client, skill).await;
        assert!(state.contains("Unknown") && state.contains(file), "{state}");
        assert!(column.contains("Unknown"), "{column}");
        assert_eq!(cell.state, Visibility::Unknown);
        let (result, evidence, _) = check(&report, CheckKind::Offered);
        assert!(result == CheckResult::Unknown && evidence.contains(file), "{evidence}");
    }
    scene.write("home/.claude/settings.json", vec![b' '; (1 << 20) + 1]);
    let (state, ..) = views_of(&core, "claude-code", "a").await;
    assert!(state.contains("Unknown") && state.contains("~/.claude/settings.json"), "{state}");
    scene.write("home/.claude/settings.json", "");
    let (state, ..) = views_of(&core, "claude-code", "a").await;
    assert_eq!(state, "Some(Found)", "an empty file has no settings");
}

/// What a client does with a skill, and the visibility of it.
async fn state_of(core: &Local, client: &str, skill: &str) -> (String, Visibility) {
    let (state, _, cell, _) = views_of(core, client, skill).await;
    (state, cell.state)
}

#[tokio::test]
async fn a_skill_that_claude_code_denies_is_not_known_to_be_listed() {
    let scene = Scene::new();
    for name in ["a", "ab", "b", "c"] {
        scene.skill(&format!("home/.claude/skills/{name}"), name, &format!("Does {name}."));
    }
    scene.write(
        "home/.claude/settings.json",
        r#"{"permissions": {"deny": ["Bash(rm *)", "Skill(a *)", "Skill(b)"]}, "skillOverrides": {"b": "off"}}"#,
    );
    let core = scene.core("repo").await;
    for name in ["a", "ab"] {
        let (state, visibility) = state_of(&core, "claude-code", name).await;
        let expected = "lists a denied skill is not documented: `permissions.deny: Skill(a *)` in ~/.claude/settings.json";
        assert!(state.contains(expected), "{state}");
        assert_eq!(visibility, Visibility::Unknown);
    }
    let (state, visibility) = state_of(&core, "claude-code", "b").await;
    assert!(state.contains("TurnedOff(\"`skillOverrides: off`"), "{state}");
    assert_eq!(visibility, Visibility::Off);
    assert_eq!(state_of(&core, "claude-code", "c").await.1, Visibility::Full);
    let project = r#"{"permissions": {"deny": ["Skill"]}, "skillOverrides": {"c": "on"}}"#;
    scene.write("repo/.claude/settings.json", project);
    scene.write(
        "repo/.claude/settings.local.json",
        r#"{"permissions": {"deny": ["Skill(c)"], "allow": ["Skill(c)"]}}"#,
    );
    for name in ["a", "c"] {
        let (state, visibility) = state_of(&core, "claude-code", name).await;
        assert!(state.contains("TurnedOff(\"`permissions.deny: Skill` in "), "{state}");
        assert_eq!(visibility, Visibility::Off, "no other rule allows it");
    }
    scene.write("repo/.claude/settings.json", r#"{"permissions": {"deny": "Skill"}}"#);
    let (state, _) = state_of(&core, "claude-code", "a").await;
    assert!(state.contains("Unknown") && state.contains("`deny` is not a list"), "{state}");
}

#[tokio::test]
async fn gemini_cli_merges_disabled_names() {
    let scene = Scene::new();
    for name in ["a", "b", "c"] {
        scene.skill(&format!("home/.gemini/skills/{name}"), name, &format!("Does {name}."));
    }
    let user = "home/.gemini/settings.json";
    let project = "repo/.gemini/settings.json";
    scene.write(user, "{\n  // a comment\n  \"skills\": {\"disabled\": [\"A\"]} /* here */\n}");
    scene.write(project, r#"{"skills": {"disabled": ["b"], "enabled": true}}"#);
    let core = scene.core("repo").await;
    let (state, visibility) = state_of(&core, "gemini-cli", "a").await;
    assert!(state.contains("TurnedOff(\"`skills.disabled` in ~/.gemini/settings.json"), "{state}");
    assert_eq!(visibility, Visibility::Off);
    assert_eq!(state_of(&core, "gemini-cli", "b").await.1, Visibility::Off);
    assert_eq!(state_of(&core, "gemini-cli", "c").await.1, Visibility::Full);
    scene.write(user, r#"{"skills": {"enabled": false}}"#);
    let states = [state_of(&core, "gemini-cli", "b").await.1, state_of(&core, "gemini-cli", "c").await.1];
    assert_eq!(states, [Visibility::Off, Visibility::Full], "the project turns skills on");
    scene.write(project, "{}");
    let (state, _) = state_of(&core, "gemini-cli", "c").await;
    assert!(state.contains("TurnedOff(\"`skills.enabled: false` in ~/.gemini/settings.json"), "{state}");
    let bundled = core.client_view("gemini-cli").await.unwrap();
    assert!(bundled.list.entries.is_empty(), "its own skills are off too: {:?}", bundled.list.entries);
    scene.write(user, r#"{"skills": {"disabled": ["a",]}}"#);
    let (state, visibility) = state_of(&core, "gemini-cli", "c").await;
    assert!(state.contains("~/.gemini/settings.json cannot be read"), "{state}");
    assert_eq!(visibility, Visibility::Unknown);
}

#[tokio::test]
async fn last_matching_opencode_permission_applies() {
    let scene = Scene::new();
    for name in ["internal-a", "internal-b", "c"] {
        scene.skill(&format!("home/.config/opencode/skills/{name}"), name, &format!("Does {name}."));
    }
    let user = "home/.config/opencode/opencode.jsonc";
    let project = "repo/opencode.json";
    scene.write(
        user,
        r#"{ // a comment
            "permission": {"skill": {"*": "allow", "internal-*": "deny", "internal-b": "ask"},},
        }"#,
    );
    fs::create_dir_all(scene.out.join("repo/below")).unwrap();
    let core = scene.core("repo/below").await;
    let (state, visibility) = state_of(&core, "opencode", "internal-a").await;
    let expected = "TurnedOff(\"`permission.skill.internal-*: deny` in ~/.config/opencode/opencode.jsonc";
    assert!(state.contains(expected), "{state}");
    assert_eq!(visibility, Visibility::Off);
    assert_eq!(state_of(&core, "opencode", "internal-b").await.1, Visibility::Full);
    assert_eq!(state_of(&core, "opencode", "c").await.1, Visibility::Full);
    // A key keeps its place.
    scene.write(project, r#"{"permission": {"skill": {"c": "deny", "*": "deny", "internal-*": "allow"}}}"#);
    assert_eq!(state_of(&core, "opencode", "internal-a").await.1, Visibility::Full);
    let (state, _) = state_of(&core, "opencode", "c").await;
    assert!(
        state.contains("`permission.skill.c: deny` in ") && state.contains("repo/opencode.json"),
        "{state}"
    );
    scene.write(project, r#"{"permission": "deny"}"#);
    let (state, _) = state_of(&core, "opencode", "internal-b").await;
    assert!(state.contains("TurnedOff(\"`permission: deny` in "), "{state}");
    scene.write(project, r#"{"tools": {"sk*": true, "skill": false}}"#);
    assert_eq!(state_of(&core, "opencode", "c").await.1, Visibility::Full, "permissions come after tools");
    scene.write(user, "{}");
    let (state, _) = state_of(&core, "opencode", "c").await;
    assert!(state.contains("TurnedOff(\"`tools.skill: false` in "), "{state}");
    scene.write("repo/.opencode/opencode.json", r#"{"permission": {"skill": {"c": "maybe"}}}"#);
    let (state, visibility) = state_of(&core, "opencode", "c").await;
    assert!(state.contains("`permission.skill.c` has an unknown value in "), "{state}");
    assert_eq!(visibility, Visibility::Unknown);
    scene.write(user, "{ permission: {} }");
    let (state, _) = state_of(&core, "opencode", "internal-a").await;
    assert!(state.contains("Unknown") && state.contains("opencode.jsonc cannot be read"), "{state}");
}

#[tokio::test]
async fn copilot_merges_disabled_names() {
    let scene = Scene::new();
    for name in ["a", "b", "c"] {
        scene.skill(&format!("home/.copilot/skills/{name}"), name, &format!("Does {name}."));
    }
    scene.write("home/.copilot/settings.json", "{\"disabledSkills\": [\"a\"]} // a comment");
    scene.write("repo/.github/copilot/settings.local.json", r#"{"disabledSkills": ["b"]}"#);
    let core = scene.core("repo").await;
    let (state, visibility) = state_of(&core, "copilot", "a").await;
    assert!(state.contains("TurnedOff(\"`disabledSkills` in ~/.copilot/settings.json"), "{state}");
    assert_eq!(visibility, Visibility::Off);
    assert_eq!(state_of(&core, "copilot", "b").await.1, Visibility::Off);
    assert_eq!(state_of(&core, "copilot", "c").await.1, Visibility::Full);
}

#[tokio::test]
async fn openclaw_turns_off_skills_by_their_key() {
    let scene = Scene::new();
    for name in ["a", "b"] {
        scene.skill(&format!("home/.openclaw/skills/{name}"), name, &format!("Does {name}."));
    }
    scene.write(
        "home/.openclaw/skills/keyed/SKILL.md",
        "---\nname: keyed\ndescription: Does it.\nmetadata: {openclaw: {skillKey: other}}\n---\n# keyed\n",
    );
    let file = "home/.openclaw/openclaw.json";
    scene.write(
        file,
        r#"{"skills": {"entries": { // a comment
            "a": {"enabled": false}, "b": {"enabled": true}, "other": {"enabled": false,}}}}"#,
    );
    let core = scene.core("repo").await;
    for (name, key) in [("a", "a"), ("keyed", "other")] {
        let (state, visibility) = state_of(&core, "openclaw", name).await;
        let expected =
            format!("TurnedOff(\"`skills.entries.{key}.enabled: false` in ~/.openclaw/openclaw.json");
        assert!(state.contains(&expected), "{state}");
        assert_eq!(visibility, Visibility::Off);
    }
    assert_eq!(state_of(&core, "openclaw", "b").await.1, Visibility::Full);
    scene.write(file, "{skills: {entries: {b: {enabled: false}}}}");
    assert_eq!(state_of(&core, "openclaw", "b").await.1, Visibility::Off, "JSON5");
    for (settings, expected) in [
        ("{skills: {}", "cannot be read"),
        (r#"{"skills": {"$include": "./skills.json"}}"#, "`$include` are not read"),
        (r#"{"agents": {"defaults": {"skills": ["a"]}}}"#, "(`agents`) are not read in ~/.openclaw"),
    ] {
        scene.write(file, settings);
        let (state, visibility) = state_of(&core, "openclaw", "b").await;
        assert!(state.contains("Unknown") && state.contains(expected), "{state}");
        assert_eq!(visibility, Visibility::Unknown);
    }
    scene.write(file, r#"{"skills": {"allowBundled": ["b"]}}"#);
    let view = core.client_view("openclaw").await.unwrap();
    let listed: Vec<&str> = view.list.included().map(|entry| entry.name.as_str()).collect();
    assert_eq!(listed, ["a", "b", "keyed"], "its own skills are off");
}

#[tokio::test]
async fn folder_given_as_root_is_reported_as_assumed() {
    let scene = Scene::new();
    scene.skill("repo/far/a", "a", "Does a.");
    scene.skill("repo/.claude/skills/b", "b", "Does b.");
    let far = scene.core_at_root("repo/far").await;
    let (_, _, cell, report) = views_of(&far, "codex", "a").await;
    assert!(cell.assumed && cell.state == Visibility::Full);
    let note = "given by --root: checked as if Codex searched it";
    assert_eq!(check(&report, CheckKind::Folder), (CheckResult::Unknown, note, ""));
    assert!(report.wins && report.clients[0].assumed && !report.clients[0].searches_folder);
    let view = far.client_view("codex").await.unwrap();
    assert_eq!(view.notes().len(), 1);
    assert!(view.entries.iter().any(|entry| entry.assumed));
    assert!(view.list.entries.iter().any(|(entry, _)| entry.assumed));
    let budget = far.budget(Some("codex"), None).await.unwrap();
    assert_eq!(budget.assumed_folders, view.assumed_folders);
    // The folder of a client is searched by that client, and assumed for the others.
    let own = scene.core_at_root("repo/.claude/skills").await;
    let view = own.client_view("claude-code").await.unwrap();
    assert!(view.assumed_folders.is_empty() && view.entries.iter().all(|entry| !entry.assumed));
    let report = why(&own, &WhyRequest { skill_id: "b".to_owned(), ..WhyRequest::default() }).await.unwrap();
    assert!(report.clients.iter().all(|client| !client.assumed), "those that search it are reported");
    assert_eq!(report.clients[0].name, "Claude Code");
    assert!(report.other_clients.contains(&"Codex".to_owned()), "{:?}", report.other_clients);
}

#[tokio::test]
async fn the_shipped_skills_are_in_no_folder_of_a_client() {
    let scene = Scene::new();
    let core = scene.core("repo").await;
    let (state, _, cell, report) = views_of(&core, "claude-code", "json-diff").await;
    assert_eq!((state.as_str(), cell.assumed), ("Some(Found)", true));
    let (result, evidence, _) = check(&report, CheckKind::Folder);
    assert!(result == CheckResult::Unknown && evidence.contains("checked as if"), "{evidence}");
}

#[tokio::test]
async fn a_description_that_a_client_replaces_is_not_shown_in_full() {
    let scene = Scene::new();
    scene.write("home/.claude/skills/none/SKILL.md", "---\nname: none\n---\n# The title\n\nBODY\n");
    scene.write(
        "home/.claude/skills/quote/SKILL.md",
        "---\nname: quote\ndescription: \"Makes bills.\nlicense: MIT\n---\n# The title\n",
    );
    scene.write(
        "home/.claude/skills/end/SKILL.md",
        "---\nname: end\ndescription: Use when:\n---\n# The title\n",
    );
    let core = scene.core("repo").await;
    for skill in ["none", "quote", "end"] {
        let (_, column, cell, report) = views_of(&core, "claude-code", skill).await;
        let text = "Claude Code shows “The title” instead of the description";
        let made = core.budget(Some("claude-code"), None).await.unwrap().allowance.fill.made;
        assert_eq!((made.complete, made.other_text), (0, 3), "{skill}");
        assert_eq!((column.as_str(), cell.state), ("OtherText", Visibility::OtherText), "{skill}");
        assert_eq!(
            (cell.reason.as_deref(), cell.shown.as_deref()),
            (Some(text), Some("The title")),
            "{skill}"
        );
        let (result, evidence, help) = check(&report, CheckKind::Description);
        assert_eq!((result, evidence), (CheckResult::Fail, text), "{skill}");
        assert!(!help.is_empty(), "{skill}");
        assert!(report.answer().contains("Claude Code shows other text"), "{}", report.answer());
        if skill == "quote" {
            let parse = &report.checks[0];
            assert!(parse.evidence.contains("SKILL.md:3") && help.contains("Close the quote"), "{parse:?}");
        }
    }
}

#[tokio::test]
async fn a_description_that_only_a_client_can_read_is_quoted() {
    let scene = Scene::new();
    let written = "---\nname: lines\ndescription: \"Makes\" bills.\n---\n# The title\n";
    scene.write("home/.gemini/skills/lines/SKILL.md", written);
    let core = scene.core("repo").await;
    let (_, _, cell, report) = views_of(&core, "gemini-cli", "lines").await;
    assert_eq!(cell.shown.as_deref(), Some("\"Makes\" bills."));
    let text = "Gemini CLI shows “\"Makes\" bills.”, which this catalog cannot read";
    assert_eq!(check(&report, CheckKind::Description), (CheckResult::Pass, text, ""));
}

#[tokio::test]
async fn unknown_facts_are_unknown_in_every_view() {
    let scene = Scene::new();
    let written = "---\nname: star\ndescription: [Beta] Makes bills.\n---\n# The title\n";
    scene.write("home/.claude/skills/star/SKILL.md", written);
    scene.skill("far/linked", "linked", "Does it.");
    fs::create_dir_all(scene.out.join("home/.cursor/skills")).unwrap();
    let link = scene.out.join("home/.cursor/skills/linked");
    std::os::unix::fs::symlink(scene.out.join("far/linked"), link).unwrap();
    let core = scene.core("repo").await;
    let (state, column, cell, report) = views_of(&core, "claude-code", "star").await;
    assert!(state.contains("Unknown") && column.contains("Unknown"), "{state} {column}");
    assert_eq!(cell.state, Visibility::Unknown);
    assert_eq!(check(&report, CheckKind::Parse).0, CheckResult::Unknown);
    let made = core.budget(Some("claude-code"), None).await.unwrap().allowance.fill.made;
    assert_eq!((made.complete, made.unknown), (0, 1));
    let (state, column, cell, report) = views_of(&core, "cursor", "linked").await;
    assert!(state.contains("Unknown") && state.contains("whether Cursor follows it"), "{state}");
    assert_eq!((column.as_str(), cell.state), ("not listed", Visibility::Unknown));
    assert_eq!(check(&report, CheckKind::Folder).0, CheckResult::Unknown);
}

#[tokio::test]
async fn every_failed_check_of_a_client_has_help_and_another_copy_is_named() {
    let scene = Scene::new();
    scene.skill("home/.claude/skills", "top", "Right in the folder of skills.");
    scene.write(
        "home/.claude/skills/paths/SKILL.md",
        "---\nname: paths\ndescription: Waits.\npaths: [\"*.rs\"]\n---\nBODY\n",
    );
    scene.skill("home/.claude/skills/twice", "twice", "From Claude Code's folder.");
    scene.skill("home/.codex/skills/twice", "twice", "From Codex' folder.");
    let core = scene.core("repo").await;
    let (.., report) = views_of(&core, "claude-code", "skills").await;
    let (result, _, help) = check(&report, CheckKind::Folder);
    let to = scene.out.join("home/.claude/skills/NAME/SKILL.md");
    assert_eq!((result, help), (CheckResult::Fail, &*format!("move SKILL.md to {}", to.display())));
    let (.., report) = views_of(&core, "claude-code", "paths").await;
    assert!(check(&report, CheckKind::Offered).2.starts_with("remove `paths`"));
    let winner = core.client_view("claude-code").await.unwrap();
    let winner = winner.list.entries.iter().find(|(entry, _)| entry.name == "twice").unwrap();
    let id = winner.0.skill_id.clone().unwrap();
    let (.., report) = views_of(&core, "codex", id.as_str()).await;
    let (result, evidence, _) = check(&report, CheckKind::Folder);
    let copy = scene.out.join("home/.codex/skills/twice/SKILL.md");
    assert_eq!(result, CheckResult::Fail);
    assert!(evidence.ends_with(&format!("it lists another copy: {}", copy.display())), "{evidence}");
    assert_eq!(report.answer(), "Codex does not offer the skill.");
}

#[tokio::test]
async fn extracted_skills_do_not_replace_user_skills() {
    let scene = Scene::new();
    // The first start, without any skill, extracts them.
    drop(scene.core("repo").await);
    scene.skill("home/.claude/skills/mine", "mine", "Does it.");
    let core = scene.core("repo").await;
    let view = core.client_view("codex").await.unwrap();
    assert!(view.list.entries.iter().all(|(entry, _)| entry.bundled), "{:?}", view.list.entries);
    assert!(view.foreign.is_empty() && view.assumed_folders.is_empty(), "{:?}", view.foreign);
}

#[tokio::test]
async fn shipped_skills_in_the_catalog_are_not_counted_as_not_listed() {
    let scene = Scene::new();
    // This catalog has no root for the folder `skills` of a workspace; the client lists it.
    scene.skill("repo/skills/mine", "mine", "Does it.");
    let core = scene.core("repo").await;
    let view = core.client_view("openclaw").await.unwrap();
    assert!(view.entries.iter().any(|entry| entry.skill_id.as_str() == "json-diff"));
    let groups: Vec<_> = view.not_listed.iter().map(|group| group.why.as_str()).collect();
    assert!(groups.iter().all(|why| !why.contains("folder")), "{groups:?}");
}

#[tokio::test]
async fn result_covers_the_requested_clients_only() {
    let scene = Scene::new();
    let paths = "---\nname: inv\ndescription: Checks invoices.\npaths: [\"*.rs\"]\n---\nBODY\n";
    scene.write("home/.claude/skills/inv/SKILL.md", paths);
    scene.write(
        "home/.claude/skills/star/SKILL.md",
        "---\nname: star\ndescription: [Beta] Makes bills.\n---\n# The title\n",
    );
    let core = scene.core("repo").await;
    let answer = async |skill: &str, clients: &[&str]| {
        let clients = clients.iter().map(|client| (*client).to_owned()).collect();
        let request = WhyRequest { skill_id: skill.to_owned(), intent: None, clients };
        why(&core, &request).await.unwrap().answer()
    };
    assert_eq!(answer("inv", &["claude-code"]).await, "Claude Code does not offer the skill.");
    assert_eq!(answer("inv", &["opencode"]).await, "OpenCode offers the skill.");
    assert_eq!(answer("inv", &[]).await, "Claude Code does not offer the skill.");
    let codex = answer("inv", &["codex", "gemini-cli"]).await;
    assert_eq!(codex, "Codex and Gemini CLI do not offer the skill.");
    let unknown = "It is not known whether Claude Code offers the skill.";
    assert_eq!(answer("star", &["claude-code"]).await, unknown);
}

#[tokio::test]
async fn missing_description_is_stated_once_in_every_view() {
    let scene = Scene::new();
    scene.write("home/.claude/skills/none/SKILL.md", "---\nname: none\n---\n# Title\n\nA paragraph.\n");
    scene.write("repo/.agents/skills/blank/SKILL.md", "---\nname: blank\ndescription: \" \"\n---\nText.\n");
    let core = scene.core("repo").await;
    let (_, _, cell, report) = views_of(&core, "goose", "none").await;
    let parse = &report.checks[0].evidence;
    assert!(parse.contains("`description` is missing") && !parse.contains("other clients"), "{parse}");
    let (result, evidence, help) = check(&report, CheckKind::Description);
    assert_eq!((result, evidence), (CheckResult::Fail, "only the name is shown: goose finds no description"));
    assert!(help.starts_with("Add a `description:`"), "{help}");
    assert_eq!(cell.state, Visibility::NameOnly);
    let (_, _, cell, report) = views_of(&core, "gemini-cli", "blank").await;
    let parse = &report.checks[0].evidence;
    assert!(parse.contains("`description` is empty") && !parse.contains("other clients"), "{parse}");
    assert_eq!(check(&report, CheckKind::Description).0, CheckResult::Fail);
    assert_eq!(cell.state, Visibility::NameOnly);
}

#[tokio::test]
async fn assumptions_are_not_reported_as_facts() {
    let scene = Scene::new();
    scene.skill("repo/far/in/deep", "deep", "Does it.");
    scene.skill("repo/.claude/skills/own", "own", "Does it.");
    let far = scene.core_at_root("repo/far").await;
    let report = why(&far, &WhyRequest { skill_id: "deep".to_owned(), ..WhyRequest::default() }).await;
    let report = report.unwrap();
    let answer = report.answer();
    let start = "No client searches this folder. If all did, Claude Code";
    assert!(answer.starts_with(start) && answer.contains("would not offer the skill"), "{answer}");
    let of = |id: &str| report.clients.iter().find(|client| client.client == id).unwrap();
    for id in ["claude-code", "codex"] {
        let folder = &of(id).checks[0];
        assert_eq!((folder.check, folder.result), (CheckKind::Folder, CheckResult::Unknown), "{id}");
    }
    let deep = &of("claude-code").checks[1];
    let help = deep.help.as_deref().unwrap();
    assert!(help.contains("~/.claude/skills"), "{help}");
    let far = scene.core_at_root("repo/far/in").await;
    let report = why(&far, &WhyRequest { skill_id: "deep".to_owned(), ..WhyRequest::default() }).await;
    assert_eq!(
        report.unwrap().answer(),
        "No client searches this folder. If one did, it would offer the skill."
    );
    let request = DraftRequest {
        skill_id: "own".to_owned(),
        description: Some("Does it well.".to_owned()),
        ..DraftRequest::default()
    };
    let shown = scene.core_at_root("repo/.claude/skills").await.draft(request).await.unwrap().shown;
    let of = |id: &str| shown.iter().find(|one| one.client == id).unwrap();
    assert!(!of("claude-code").assumed && of("codex").assumed, "{shown:?}");
}

#[tokio::test]
async fn a_file_that_is_too_large_has_help() {
    let scene = Scene::new();
    let large = format!("---\nname: large\ndescription: Does it.\n---\n{}", "x\n".repeat(600_000));
    scene.write("home/.claude/skills/large/SKILL.md", large);
    let core = scene.core("repo").await;
    let (.., report) = views_of(&core, "claude-code", "large").await;
    let (result, _, help) = check(&report, CheckKind::Parse);
    assert_eq!(result, CheckResult::Fail);
    assert_eq!(help, "move text into other files of the folder, so that SKILL.md is smaller");
}

#[tokio::test]
async fn a_second_link_to_a_folder_is_listed_as_the_first() {
    let scene = Scene::new();
    scene.skill("far/shared", "shared", "Does it.");
    fs::create_dir_all(scene.out.join("home/.claude/skills")).unwrap();
    for link in ["l1", "l2"] {
        let link = scene.out.join("home/.claude/skills").join(link);
        std::os::unix::fs::symlink(scene.out.join("far/shared"), link).unwrap();
    }
    let core = scene.core("repo").await;
    assert_eq!(scene.names("claude-code", "repo").await, ["l1"]);
    let (state, column, cell, report) = views_of(&core, "claude-code", "l2").await;
    assert!(state.contains("Shadowed") && state.contains("/l1/SKILL.md"), "{state}");
    assert_eq!((column.as_str(), cell.state), ("not listed", Visibility::Shadowed));
    assert_eq!(cell.reason.as_deref(), Some("the same folder is already listed as l1"));
    let (result, evidence, help) = check(&report, CheckKind::Name);
    assert_eq!((result, evidence), (CheckResult::Fail, "the same folder is already listed as l1"));
    assert_eq!(help, "remove one of the two links");
    let (state, ..) = views_of(&core, "claude-code", "l1").await;
    assert_eq!(state, "Some(Found)");
}

#[tokio::test]
async fn skills_below_a_linked_folder_are_in_every_view_of_a_client_that_follows_the_link() {
    let scene = Scene::new();
    scene.skill("far/skills/alpha", "alpha", "Makes charts.");
    scene.skill("far/skills/beta", "beta", "Makes tables.");
    scene.write("far/skills/broken/SKILL.md", "A private line.\n");
    fs::create_dir_all(scene.out.join("home/.claude/skills")).unwrap();
    let link = scene.out.join("home/.claude/skills/team");
    std::os::unix::fs::symlink(scene.out.join("far/skills"), &link).unwrap();
    let core = scene.core("repo").await;
    let view = core.client_view("opencode").await.unwrap();
    let mut found: Vec<_> = view.foreign.iter().map(|one| one.location.clone()).collect();
    found.sort();
    assert_eq!(found, ["alpha", "beta", "broken"].map(|name| link.join(name).join("SKILL.md")));
    for (skill, words) in [("alpha", 2), ("beta", 2)] {
        let (_, column, cell, report) = views_of(&core, "opencode", skill).await;
        assert_eq!(
            (column.as_str(), cell.state, cell.words),
            ("Complete", Visibility::Full, words),
            "{skill}"
        );
        assert!(report.clients[0].passes(), "{:?}", report.clients);
        assert_eq!(report.checks[0].result, CheckResult::Unknown);
        let evidence = &report.checks[0].evidence;
        assert!(evidence.contains("team, a symbolic link that points outside its root"), "{evidence}");
    }
    let (_, column, cell, report) = views_of(&core, "opencode", "broken").await;
    assert_eq!((column.as_str(), cell.state), ("not listed", Visibility::Unknown));
    let (result, evidence, _) = check(&report, CheckKind::Parse);
    assert_eq!(result, CheckResult::Unknown);
    assert!(
        evidence.starts_with("a link that points outside the folder, to a file without readable frontmatter"),
        "{evidence}"
    );
    assert!(
        !format!("{view:?} {cell:?} {report:?}").contains("A private line"),
        "no text behind a link is read"
    );
    // The link is not a skill itself.
    let (state, column, cell, report) = views_of(&core, "opencode", "team").await;
    assert!(state.contains("the skills in it are listed separately"), "{state}");
    assert_eq!((column.as_str(), cell.state), ("not listed", Visibility::NotSearched));
    assert_eq!(check(&report, CheckKind::Folder).0, CheckResult::Fail);
    // Claude Code searches direct subfolders only.
    let (_, column, cell, _) = views_of(&core, "claude-code", "team").await;
    assert_eq!((column.as_str(), cell.state), ("not listed", Visibility::NotSearched));
}

#[tokio::test]
async fn skills_below_a_linked_folder_have_one_reason_in_every_view_of_a_client_that_misses_them() {
    let scene = Scene::new();
    scene.skill("far/skills/alpha", "alpha", "Makes charts.");
    fs::create_dir_all(scene.out.join("home/.claude/skills")).unwrap();
    let folder = scene.out.join("home/.claude/skills");
    std::os::unix::fs::symlink(scene.out.join("far/skills"), folder.join("team")).unwrap();
    let core = scene.core("repo").await;
    let (.., cell, report) = views_of(&core, "claude-code", "alpha").await;
    let why_missed =
        format!("nested too deep (Claude Code searches only direct subfolders of {})", folder.display());
    assert_eq!((cell.state, cell.reason.as_deref()), (Visibility::NotSearched, Some(&*why_missed)));
    let (result, evidence, _) = check(&report, CheckKind::Folder);
    assert_eq!((result, evidence), (CheckResult::Fail, &*why_missed));
    assert_eq!(report.answer(), "Claude Code does not offer the skill.");
    let (.., cell, report) = views_of(&core, "cursor", "alpha").await;
    assert_eq!(cell.state, Visibility::Unknown);
    let (result, evidence, _) = check(&report, CheckKind::Folder);
    assert_eq!(result, CheckResult::Unknown);
    assert!(evidence.contains("whether Cursor follows it"), "{evidence}");
    let request = WhyRequest { skill_id: "alpha".to_owned(), ..WhyRequest::default() };
    let report = why(&core, &request).await.unwrap();
    assert!(report.answer().starts_with("Claude Code does not offer the skill"), "{}", report.answer());
    let claude = core.client_view("claude-code").await.unwrap();
    let names: Vec<&str> =
        claude.not_listed.iter().flat_map(|group| &group.names).map(|name| &**name).collect();
    assert!(names.contains(&"alpha"), "{names:?}");
}

#[tokio::test]
async fn folder_as_skill_file_is_reported() {
    let scene = Scene::new();
    scene.write("home/.claude/skills/dir/SKILL.md/notes.txt", "");
    let core = scene.core("repo").await;
    let (state, column, _, report) = views_of(&core, "claude-code", "dir").await;
    assert!(state.contains("SKILL.md is a folder"), "{state}");
    assert_eq!(column, "not listed");
    let (result, evidence, help) = check(&report, CheckKind::Folder);
    assert_eq!(result, CheckResult::Fail);
    assert_eq!(evidence, "SKILL.md is a folder; Claude Code reads only a file of that name");
    assert_eq!(help, "replace the folder with a file");
}

#[tokio::test]
async fn a_file_without_read_permission_is_dropped() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new();
    scene.skill("home/.claude/skills/secret", "secret", "Does it.");
    let file = scene.out.join("home/.claude/skills/secret/SKILL.md");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&file).is_ok() {
        println!("SKIPPED: this user reads files without permission");
        return;
    }
    let core = scene.core("repo").await;
    let (state, _, cell, report) = views_of(&core, "claude-code", "secret").await;
    assert!(state.contains("Dropped") && state.contains("cannot be read"), "{state}");
    assert_eq!(cell.state, Visibility::Dropped);
    let (result, evidence, help) = check(&report, CheckKind::Parse);
    assert!(result == CheckResult::Fail && evidence.contains("its SKILL.md cannot be read"), "{evidence}");
    assert_eq!(help, "check the permissions of the file and its folders");
}

#[tokio::test]
async fn whether_a_machine_satisfies_the_conditions_of_a_skill_is_unknown() {
    let scene = Scene::new();
    let skill = |name: &str, metadata: &str| {
        let text = format!("---\nname: {name}\ndescription: Does it.\nmetadata: {metadata}\n---\nB\n");
        scene.write(&format!("home/.agents/skills/{name}/SKILL.md"), text);
    };
    skill("gated", "{\"openclaw\": {\"requires\": {\"bins\": [\"none-such\"]}}}");
    skill("system", "{openclaw: {os: [darwin]}}");
    skill("open", "{openclaw: {emoji: x, requires: {}, os: []}}");
    let core = scene.core("repo").await;
    for (name, key) in [("gated", "metadata.openclaw.requires"), ("system", "metadata.openclaw.os")] {
        let (state, column, cell, report) = views_of(&core, "openclaw", name).await;
        assert!(state.contains("Unknown") && state.contains(key), "{state}");
        assert!(column.contains("Unknown"), "{column}");
        assert_eq!(cell.state, Visibility::Unknown);
        let (result, evidence, _) = check(&report, CheckKind::Offered);
        assert!(result == CheckResult::Unknown && evidence.contains(key), "{evidence}");
        assert_eq!(
            views_of(&core, "codex", name).await.0,
            "Some(Found)",
            "no other client has the condition"
        );
    }
    assert_eq!(views_of(&core, "openclaw", "open").await.0, "Some(Found)");
}
