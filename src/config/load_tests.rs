//! Settings from files, variables and arguments in combination.

use super::super::file::ALLOWED;
use super::*;

struct LocationInFile {
    dir: tempfile::TempDir,
    env: Env,
}

impl LocationInFile {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::at(dir.path().join("home"));
        std::fs::create_dir_all(dir.path().join("repo/.git")).unwrap();
        std::fs::create_dir_all(dir.path().join("repo/a/b")).unwrap();
        Self { dir, env }
    }

    fn cwd(&self) -> PathBuf {
        self.dir.path().join("repo/a/b")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn user(&self, text: &str) {
        self.write("home/.config/skill-workbench/config.yaml", text);
    }

    fn load(&self, arguments: &Arguments) -> Result<Config, ConfigError> {
        Config::load(&self.cwd(), &self.env, arguments)
    }

    fn message(&self, error: &ConfigError) -> String {
        error.to_string().replace(&*self.dir.path().to_string_lossy(), "")
    }
}

#[test]
fn arguments_override_environment_project_and_user() {
    let mut place = LocationInFile::new();
    place.user("watch: false\nlimit: 5\ntheme: light\npolicy: strict\nlinks: {typo: false}\n");
    place.write("repo/.skill-workbench.yaml", "limit: 7\nlinks: {semantic: false}\nclient: codex\n");
    place.write(".skill-workbench.yaml", "limit: 99\n");
    place.env.vars.insert("SKILLS_LIMIT".to_owned(), "9".to_owned());
    place.env.vars.insert("SKILLS_THEME".to_owned(), "mono".to_owned());
    let arguments = Arguments { theme: Some("dark".to_owned()), ..Arguments::default() };
    let config = place.load(&arguments).unwrap();
    assert_eq!((config.limit, config.watch, config.policy), (Some(9), false, RankPolicy::Strict));
    assert_eq!(config.theme.as_deref(), Some("dark"));
    assert_eq!(config.client.as_deref(), Some("codex"));
    assert_eq!(config.matchers.off().collect::<Vec<_>>(), ["typo", "semantic"]);
    assert_eq!(config.files.len(), 2, "the file above the repository is not the project's");
}

#[test]
fn roots_are_merged_nearest_first_relative_to_their_file() {
    let mut place = LocationInFile::new();
    place.user("roots:\n  - ~/mine\n  - {path: rel, label: relative}\n");
    place.write("repo/.skill-workbench.yaml", "roots: [skills]\n");
    place.env.vars.insert("SKILLS_ROOTS".to_owned(), "x:/abs:~/team".to_owned());
    let config = place.load(&Arguments { roots: vec!["../given".into()], ..Arguments::default() }).unwrap();
    let at = |path: &str| place.dir.path().join(path);
    let paths: Vec<_> = config.roots.iter().map(|root| root.path.clone()).collect();
    let rel = at("home/.config/skill-workbench/rel");
    let (team, mine) = (at("home/team"), at("home/mine"));
    assert_eq!(paths, [at("repo/a/b/x"), "/abs".into(), team, at("repo/skills"), mine, rel]);
    assert_eq!(config.roots[5].label.as_deref(), Some("relative"));
    // The working directory may be that of a downloaded repository.
    let of_project: Vec<bool> = config.roots.iter().map(|root| root.of_project).collect();
    assert_eq!(of_project, [true, false, false, true, false, false]);
    assert_eq!(config.argument_roots, [at("repo/a/given")]);
}

#[test]
fn keys_keep_their_source_location() {
    let place = LocationInFile::new();
    place.user("keys:\n  global:\n    quit: [q, ctrl-q]\n    help: F1\n");
    let config = place.load(&Arguments::default()).unwrap();
    assert_eq!(config.keys["global"]["quit"], ["q", "ctrl-q"]);
    assert_eq!(config.keys["global"]["help"], ["F1"]);
    let at = &config.places["keys.global.help"];
    assert_eq!((at.line, at.column), (4, 11));
}

#[test]
fn keys_of_a_project_are_kept_apart_from_those_of_the_user() {
    let place = LocationInFile::new();
    place.user("keys: {list: {up: i}}\n");
    place.write("repo/.skill-workbench.yaml", "keys: {list: {up: u}}\n");
    let config = place.load(&Arguments::default()).unwrap();
    assert_eq!(config.keys["list"]["up"], ["i"]);
    assert_eq!(config.project_keys["list"]["up"], ["u"]);
    assert!(config.places["project_keys.list.up"].file.ends_with("repo/.skill-workbench.yaml"));
}

#[test]
fn a_relative_store_in_the_environment_is_refused() {
    let mut place = LocationInFile::new();
    let mut load = |store: &str| {
        place.env.vars.insert("SKILLS_STORE".to_owned(), store.to_owned());
        place.load(&Arguments::default())
    };
    for refused in
        ["sqlite:runs.db", "sqlite:./runs.db", "sqlite:../runs.db", "sqlite:", "sqlite:~bob/runs.db"]
    {
        let error = load(refused).unwrap_err();
        assert!(
            matches!(&error, ConfigError::InEnvironment { name, value, .. } if name == "SKILLS_STORE" && value == refused),
            "{error}"
        );
    }
    for accepted in ["sqlite:/srv/runs.db", "memory:", "postgres://ann@db.example/skills"] {
        assert_eq!(load(accepted).unwrap().store.as_deref(), Some(accepted));
    }
    assert!(load("sqlite:~/runs.db").unwrap().store.is_some_and(|store| store.ends_with("/home/runs.db")));
    place.env.vars.remove("SKILLS_STORE");
    let argument = Arguments { store: Some("sqlite:runs.db".to_owned()), ..Arguments::default() };
    let store = place.load(&argument).unwrap().store;
    assert_eq!(store, Some(format!("sqlite:{}", place.cwd().join("runs.db").display())));
}

#[test]
fn a_project_cannot_choose_the_editor() {
    let place = LocationInFile::new();
    place.write("repo/.skill-workbench.yaml", "editor: rm -rf ~\n");
    let error = place.load(&Arguments::default()).unwrap_err();
    assert_eq!(
        place.message(&error),
        "/repo/.skill-workbench.yaml:1:9: `editor` in a project's file would let a repository choose what \
         runs on your machine; only allowed in your own config.yaml"
    );
}

#[test]
fn a_project_can_raise_the_conformance_level_but_not_lower_it() {
    let read = |own: &str, project: &str| {
        let place = LocationInFile::new();
        place.user(own);
        place.write("repo/.skill-workbench.yaml", project);
        let level = place.load(&Arguments::default()).map(|config| config.conformance.to_string());
        level.map_err(|error| place.message(&error))
    };
    assert_eq!(read("", "conformance: strict\n"), Ok("strict".to_owned()));
    assert_eq!(read("conformance: experimental\n", "conformance: standard\n"), Ok("standard".to_owned()));
    for (own, project) in
        [("", "conformance: experimental\n"), ("conformance: strict\n", "conformance: standard\n")]
    {
        let error = read(own, project).unwrap_err();
        assert!(error.starts_with("/repo/.skill-workbench.yaml:1:14: a lower `conformance`"), "{error}");
    }
}

#[test]
fn a_project_cannot_choose_the_keys_that_approve() {
    let place = LocationInFile::new();
    place.write("repo/.skill-workbench.yaml", "keys:\n  list: {down: ctrl-n}\n");
    place.load(&Arguments::default()).unwrap();
    for key in [
        "sheet: {approve-now: esc}",
        "sheet: {down: n}",
        "overlay: {open: esc}",
        "error: {seen: y}",
        "bulk: {send-now: [u]}",
        "bulk: {undo: []}",
        "attach: {carry-out: [down, j]}",
        "list: {open: [down, j]}",
        "field: {submit: tab}",
        "later: {down: n}",
    ] {
        place.write("repo/.skill-workbench.yaml", &format!("keys:\n  {key}\n"));
        let error = place.load(&Arguments::default()).unwrap_err();
        assert!(place.message(&error).contains("only allowed in your own config.yaml"), "{key}");
        let (errors, config) = check(&place.cwd(), &place.env);
        assert_eq!((errors.len(), config.project_keys.len()), (1, 0), "{key}: {errors:?}");
    }
}

#[test]
fn a_project_loosens_nothing_that_the_user_set() {
    // Every key, with what a repository could gain by it; `None` if the project may set it.
    let keys: [(&str, &str, Option<&str>); 34] = [
        ("roots", "roots: [{path: ev, label: shipped}]", None),
        ("watch", "watch: false", None),
        ("theme", "theme: light", None),
        ("glyphs", "glyphs: ascii", None),
        ("keys", "keys: {list: {down: ctrl-n}}", None),
        ("keys", "keys: {sheet: {approve-now: esc}}", Some("`keys.sheet.approve-now`")),
        ("editor", "editor: rm", Some("`editor`")),
        ("links", "links: {typo: false}", None),
        ("policy", "policy: strict", None),
        ("limit", "limit: 7", None),
        ("with_body", "with_body: false", None),
        ("client", "client: codex", None),
        ("trust", "trust: [ev]", Some("`trust`")),
        ("policy_file", "policy_file: p.yaml", Some("`policy_file`")),
        ("services", "services: {a: {url: 'https://example.com'}}", Some("`services`")),
        ("bindings", "bindings: {a: b}", Some("`bindings`")),
        ("conformance", "conformance: experimental", Some("`conformance`")),
        ("audit", "audit: off", Some("`audit`")),
        ("workers", "workers: 3", Some("`workers`")),
        ("workers", "workers: 1", None),
        ("scripts", "scripts: {disk_mb: 9}", Some("`scripts`")),
        ("notify", "notify: {bell: false}", Some("`notify`")),
        ("connect", "connect: 'https://example.com'", Some("`connect`")),
        ("api_key_file", "api_key_file: key", Some("`api_key_file`")),
        ("store", "store: sqlite:runs.db", Some("`store`")),
        ("store_mode", "store_mode: '0660'", Some("`store_mode`")),
        ("runs", "runs: {expires_in: 2h}", Some("`runs.expires_in`")),
        ("runs", "runs: {expires_in: 30m, columns: [state], sort: since, views: {a: b}}", None),
        ("retention", "retention: {failed: 1d}", Some("`retention`")),
        ("reduced_motion", "reduced_motion: true", None),
        ("plain", "plain: true", Some("`plain`")),
        ("hyperlinks", "hyperlinks: false", None),
        ("progress", "progress: false", None),
        ("conformance", "conformance: strict", None),
    ];
    for known in ALLOWED {
        assert!(keys.iter().any(|(key, ..)| *key == known.0), "{} is not listed here", known.0);
    }
    for (_, text, gain) in keys {
        let place = LocationInFile::new();
        place.user("workers: 2\nruns: {expires_in: 1h}\n");
        place.write("repo/.skill-workbench.yaml", &format!("{text}\n"));
        let loaded = place.load(&Arguments::default());
        match gain {
            None => assert!(loaded.is_ok(), "{text}: {loaded:?}"),
            Some(gain) => {
                let error = place.message(&loaded.unwrap_err());
                assert!(error.contains(gain) && error.contains(OWN_ONLY), "{text}: {error}");
            }
        }
    }
}

#[test]
fn view_of_the_user_is_not_replaced_by_that_of_a_project() {
    let place = LocationInFile::new();
    place.user("runs: {views: {mine: 'state:failed label.env:test'}}\n");
    place.write(
        "repo/.skill-workbench.yaml",
        "runs: {views: {mine: 'state:failed', other: 'state:waiting'}}\n",
    );
    let views = place.load(&Arguments::default()).unwrap().runs.views;
    assert_eq!(views["mine"], "state:failed label.env:test");
    assert_eq!(views["other"], "state:waiting");
}

#[test]
fn the_label_of_a_project_is_not_that_of_the_user() {
    let place = LocationInFile::new();
    place.user("roots: [{path: ~/mine, label: team}]\n");
    place.write("repo/.skill-workbench.yaml", "roots: [{path: ev, label: shipped}]\n");
    let config = place.load(&Arguments::default()).unwrap();
    let labels = |root: &RootChoice| (root.label.clone(), root.project_label.clone());
    assert_eq!(labels(&config.roots[0]), (None, Some("shipped".to_owned())));
    assert_eq!(labels(&config.roots[1]), (Some("team".to_owned()), None));
}

#[cfg(unix)]
#[test]
fn endless_project_file_is_rejected() {
    let place = LocationInFile::new();
    let file = place.dir.path().join("repo/.skill-workbench.yaml");
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    assert!(matches!(place.load(&Arguments::default()), Err(ConfigError::Unreadable { .. })));
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "#".repeat(2 << 20)).unwrap();
    assert!(matches!(place.load(&Arguments::default()), Err(ConfigError::Unreadable { .. })));
    std::fs::remove_file(&file).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    assert!(matches!(place.load(&Arguments::default()), Err(ConfigError::Unreadable { .. })));
}

#[test]
fn store_path_is_relative_and_demo_store_in_memory() {
    let place = LocationInFile::new();
    let store = |demo, store: Option<&str>| {
        let arguments = Arguments { demo, store: store.map(str::to_owned), ..Arguments::default() };
        place.load(&arguments).unwrap().store
    };
    assert_eq!((store(false, None), store(true, None)), (None, Some("memory:".to_owned())));
    let file = place.cwd().join("x/runs.db");
    assert_eq!(store(true, Some("sqlite:x/runs.db")), Some(format!("sqlite:{}", file.display())));
}

#[test]
fn check_names_every_file_and_variable_that_is_wrong() {
    let mut place = LocationInFile::new();
    place.user("limit: 3\nclient: emacs\n");
    place.write("repo/.skill-workbench.yaml", "thme: dark\n");
    place.env.vars.insert("SKILLS_WATCH".to_owned(), "maybe".to_owned());
    let wrong = check(&place.cwd(), &place.env).0;
    let messages: Vec<_> = wrong.iter().map(|error| place.message(error)).collect();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn check_names_every_key_of_a_file_that_is_wrong() {
    let place = LocationInFile::new();
    let lines = |text: &str| {
        place.user(text);
        let wrong = check(&place.cwd(), &place.env).0;
        let at = |error: &ConfigError| match error {
            ConfigError::InFile { place, .. } => place.line,
            other => panic!("{other}"),
        };
        wrong.iter().map(at).collect::<Vec<_>>()
    };
    assert_eq!(lines("wach: true\nlimit: 3\nlinks:\n  magic: true\nclient: emacs\n"), [1, 4, 5]);
    assert_eq!(
        lines("runs:\n  columns: [cost]\n  sort: price\n  expires_in: 7d\nroots:\n- 5\n- a\n- 6\n"),
        [2, 3, 6, 8]
    );
    assert_eq!(lines("runs: {\n  columns: [cost],\n  sort: price }\nlimit: 0\n"), [2, 3, 4]);
    assert_eq!(lines("limit: 3\nwatch: true\n"), [0_u32; 0]);
    assert_eq!(lines("theme: [\n").len(), 1);
}

#[test]
fn check_returns_the_settings_that_are_valid() {
    let place = LocationInFile::new();
    place.user("limit: many\ntheme: light\nkeys:\n  global:\n    quit: {}\n  list: {down: j}\n");
    let (errors, config) = check(&place.cwd(), &place.env);
    assert_eq!(errors.len(), 2);
    assert_eq!((config.limit, config.theme.as_deref()), (None, Some("light")));
    assert_eq!(config.keys.keys().collect::<Vec<_>>(), ["list"]);
}

#[test]
fn check_reports_a_refused_key_of_a_project_once() {
    let place = LocationInFile::new();
    place.write("repo/.skill-workbench.yaml", "scripts:\n  files: 10\n  disk_mb: 5\n");
    assert_eq!(check(&place.cwd(), &place.env).0.len(), 1);
}

#[test]
fn check_reports_every_key_that_only_the_user_may_set() {
    let place = LocationInFile::new();
    let entries = [
        "editor: vim",
        "trust: [a]",
        "policy_file: a.yaml",
        "services: {bank: {url: \"http://127.0.0.1:9\"}}",
        "bindings: {a.b: c}",
        "audit: full",
        "scripts: {files: 10}",
        "notify: {bell: true}",
        "connect: http://127.0.0.1:9",
        "api_key_file: a",
        "store: sqlite:a.db",
        "store_mode: \"0660\"",
        "retention: {completed: 30d}",
        "plain: true",
    ];
    let own = ALLOWED.iter().filter(|(_, words)| words.ends_with("in your own config.yaml only"));
    let keys: Vec<&str> = entries.iter().filter_map(|entry| Some(entry.split_once(':')?.0)).collect();
    assert_eq!(keys, own.map(|(key, _)| *key).collect::<Vec<_>>());
    place.write("repo/.skill-workbench.yaml", &entries.join("\n"));
    let errors = check(&place.cwd(), &place.env).0;
    assert_eq!(errors.len(), entries.len(), "{errors:?}");
    for ((error, key), line) in errors.iter().zip(keys).zip(1..) {
        let text = place.message(error);
        assert_eq!(line_of(error), line, "{text}");
        assert!(
            text.starts_with("/repo/.skill-workbench.yaml:") && text.contains(&format!("`{key}`")),
            "{text}"
        );
    }
}

#[test]
fn check_reports_the_first_errors_of_a_file() {
    let place = LocationInFile::new();
    let keys = |count: usize| (0..count).map(|n| format!("key{n}: 1\n")).collect::<String>();
    for (count, errors) in [(49, 49), (51, MAX_ERRORS_PER_FILE), (20_000, MAX_ERRORS_PER_FILE)] {
        place.write("repo/.skill-workbench.yaml", &keys(count));
        assert_eq!(check(&place.cwd(), &place.env).0.len(), errors);
    }
}

#[test]
fn template_sets_nothing_and_every_uncommented_line_is_valid() {
    let place = LocationInFile::new();
    place.user(crate::TEMPLATE);
    let config = place.load(&Arguments::default()).unwrap();
    assert_eq!(Config { files: vec![], ..config }, Config::defaults(&place.cwd(), &place.env));
    let all: String = crate::TEMPLATE
        .lines()
        .map(|line| line.strip_prefix("#: ").unwrap_or(line).to_owned() + "\n")
        .collect();
    place.user(&all);
    let config = place.load(&Arguments::default()).unwrap();
    assert!(!config.roots.is_empty() && !config.keys.is_empty() && config.editor.is_some());
}
