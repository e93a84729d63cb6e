//! The pane of the golden set and the draft editor over the real core: measured, explained, edited by keys.
use crate::support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use skills_api::Local;
use skills_authoring::golden_file::read_golden;
use skills_config::{Arguments, Config, Env};
use skills_discovery::Expect;
use skills_skill::SkillId;
use skills_tui::Settings;
use skills_tui::app::AppCommand;
use skills_tui::harness::Harness;
use skills_tui::panes::attach::Attach;
use skills_tui::panes::browse::Browse;
use skills_tui::panes::discover::{Discover, History};
use skills_tui::panes::golden::Golden;
use skills_tui::panes::runs::Runs;
use skills_tui::panes::session::SessionPane;
use support::fixed_clock_client::FixedClockClient;

/// Skills that win each other's queries, and the queries.
const SKILLS: [(&str, &str); 7] = [
    ("pdf-tables", "Extracts tables from PDF files into rows and columns."),
    ("xlsx", "Creates and edits Excel spreadsheets with sheets, formulas and pivot tables."),
    ("doc-convert", "Converts documents between Word, PDF, HTML and Markdown."),
    ("report-builder", "Builds weekly reports with charts from data. Sums the columns of a report."),
    ("deploy-check", "Checks a deployment before it is released. Use for pre-flight checks."),
    ("release-notes", "Writes release notes from merged changes. Use when you ship a release."),
    ("csv-tools", "Joins, filters and cleans CSV files. Not for spreadsheets."),
];
const GOLDEN: &str = "\
# What the team asks for.
- query: make this statement a sheet   # from the support channel
  expect: [pdf-tables]
- query: convert the pdf as it is
  expect: [doc-convert]
- query: sum the columns of the report
  expect: [xlsx]
- query: is the release safe to ship
  expect: [deploy-check]
- query: get the rows out of this pdf
  expect: [pdf-tables]
- query: excel file with a pivot
  expect: [xlsx]
- query: join two csv files on id
  expect: [csv-tools]
- query: run the pre-flight checks
  expect: [deploy-check]
- query: what is a weekly report
  expect: none
- query: zzxx qqvv wwkk
  expect: none
";

pub struct TestHome {
    pub home: tempfile::TempDir,
}

impl TestHome {
    pub fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        for (id, description) in SKILLS {
            let folder = home.path().join("repo/skills").join(id);
            std::fs::create_dir_all(&folder).unwrap();
            let text = format!("---\nname: {id}\ndescription: {description}\n---\n# {id}\n\nInstructions.\n");
            std::fs::write(folder.join("SKILL.md"), text).unwrap();
        }
        std::fs::create_dir_all(home.path().join("repo/.git")).unwrap();
        std::fs::write(home.path().join("repo/.skill-workbench.yaml"), "roots: [skills]\n").unwrap();
        std::fs::write(home.path().join("repo/golden.yaml"), GOLDEN).unwrap();
        Self { home }
    }

    fn file(&self) -> PathBuf {
        self.home.path().join("repo/golden.yaml")
    }

    pub fn open(&self, width: u16, height: u16) -> Harness {
        self.open_watching(true, width, height)
    }

    fn open_watching(&self, watch: bool, width: u16, height: u16) -> Harness {
        let cwd = self.home.path().join("repo");
        let arguments =
            Arguments { watch: Some(watch), store: Some("memory:".to_owned()), ..Arguments::default() };
        let config = Config::load(&cwd, &Env::at(self.home.path().join("home")), &arguments).unwrap();
        let settings = Settings { log: skills_base::telemetry::RingBuffer::new(), ..Settings::of(&config) };
        let settings =
            Settings { theme: Some("dark".to_owned()), glyphs: skills_config::GlyphSet::Unicode, ..settings };
        let client = Arc::new(FixedClockClient(Local::open(config).unwrap()));
        let panes = vec![
            Box::new(Browse::new()) as _,
            Box::new(Discover::new(History::default())) as _,
            Box::new(Attach::new()) as _,
            Box::new(SessionPane::new()) as _,
            Box::new(Runs::new()) as _,
            Box::new(Golden::new()) as _,
        ];
        let mut harness = Harness::new(client, panes, &settings, width, height).unwrap();
        harness.wait_until("all skills indexed", |screen| {
            screen.contains("7 skills") && !screen.contains("indexed") && !screen.contains("so far")
        });
        harness
    }
}

#[test]
fn skills_tab_lists_the_queries_of_a_skill() {
    let place = TestHome::new();
    let mut harness = place.open(120, 36);
    harness.press("6").wait_for("pdf-tables").press("tab").press("]").press("]");
    harness.wait_for("P@1  passed   wins").press("enter").wait_for("expects:").wait_for(" found");
}

fn queries(file: &Path) -> Vec<(String, Expect)> {
    read_golden(file).unwrap().0.into_iter().map(|case| (case.query, case.expect)).collect()
}

fn any(id: &str) -> Expect {
    Expect::AnyOf(vec![SkillId::new(id)])
}

#[test]
fn failing_queries_come_first_with_their_reasons() {
    let place = TestHome::new();
    let mut screen = place.open(120, 36);
    screen.press("6").wait_for("failing first").press("j").wait_for("compared with");
    insta::assert_snapshot!("golden-120x36", screen.screen());
    screen.press("]").wait_for("queries won from each other");
    insta::assert_snapshot!("golden-confusions-120x36", screen.screen());
    screen.press("]").wait_for("passed   wins");
    screen.resize(80, 24).press("esc");
    insta::assert_snapshot!("golden-80x24", screen.screen());
    screen.press("tab").press("]").wait_for("expects");
    insta::assert_snapshot!("golden-detail-80x24", screen.screen());
}

#[test]
fn a_query_is_added_changed_and_removed_with_comments_kept() {
    let place = TestHome::new();
    let mut screen = place.open(120, 36);
    screen.press("6").wait_for("make this statement a sheet");
    screen.press("n").wait_for("Add a golden query").type_text("clean a csv").press("tab");
    screen.type_text("csv-tools").press("ctrl-s").wait_for("clean a csv");
    let added = queries(&place.file());
    assert_eq!(added.last().unwrap(), &("clean a csv".to_owned(), any("csv-tools")));

    screen.press("g").wait_for("make this statement a sheet");
    screen.press("/").type_text("statement").press("enter").wait_for("1 found");
    screen.press("m").wait_for("Change a golden query").press("tab").press("ctrl-u");
    screen.type_text("not xlsx").press("ctrl-s");
    screen.wait_until("the expectation is another one", |screen| screen.contains("not xlsx"));
    let text = std::fs::read_to_string(place.file()).unwrap();
    assert!(text.starts_with("# What the team asks for.\n"), "{text}");
    assert!(
        text.contains("make this statement a sheet   # from the support channel\n  not: xlsx\n"),
        "{text}"
    );

    let before = queries(&place.file()).len();
    screen.press("x").wait_for("press x again to remove");
    assert_eq!(queries(&place.file()).len(), before, "nothing is removed by one key");
    screen.press("x").wait_until("it is gone", |_| queries(&place.file()).len() == before - 1);
    assert!(queries(&place.file()).iter().all(|(query, _)| query != "make this statement a sheet"));
}

#[test]
fn changes_since_the_baseline_are_shown() {
    let place = TestHome::new();
    let mut screen = place.open(120, 36);
    screen.press("6").wait_for("no baseline").press("b").wait_for("baseline 20");
    let skill = place.home.path().join("repo/skills/pdf-tables/SKILL.md");
    let text = std::fs::read_to_string(&skill).unwrap();
    let better = text.replace("rows and columns.", "rows and columns. Makes a sheet of a statement.");
    assert_ne!(text, better);
    std::fs::write(&skill, better).unwrap();
    screen.wait_until("a rise of P@1", |screen| screen.contains("▲ +0.125"));
    screen.wait_for("▲✓ make this statement");
    // The baseline is there after a restart.
    drop(screen);
    place.open(120, 36).press("6").wait_for("baseline 20").wait_for("P@1");
}

#[test]
fn an_added_query_is_not_an_improvement() {
    let place = TestHome::new();
    let mut screen = place.open(120, 36);
    screen.press("6").wait_for("no baseline").press("b").wait_for("baseline 20");
    screen.press("n").wait_for("Add a golden query").type_text("clean a csv").press("tab");
    screen.type_text("csv-tools").press("ctrl-s").wait_for(", +1 query");
}

#[test]
fn an_unreadable_golden_set_is_named_above_the_earlier_results() {
    let place = TestHome::new();
    let mut screen = place.open(80, 24);
    screen.press("6").wait_for("make this statement a sheet");
    std::fs::write(place.file(), "- query: [\n").unwrap();
    screen.press("r").wait_for("showing earlier results; cannot be read:").wait_for("invalid golden set");
}

#[test]
fn an_evaluation_file_is_imported() {
    let place = TestHome::new();
    let evals = place.home.path().join("repo/skills/xlsx/trigger.json");
    let json = r#"{"skill_name": "xlsx", "evals": [{"prompt": "add a formula to the sheet"}, {"prompt": "excel file with a pivot"}]}"#;
    std::fs::write(evals, json).unwrap();
    let mut screen = place.open(120, 36);
    screen.press("6").wait_for("failing first").press("I").wait_for("Import golden queries");
    screen.type_text("skills/xlsx/trigger.json").press("ctrl-s").wait_for("1 of 2 queries added");
    assert_eq!(
        queries(&place.file()).last().unwrap(),
        &("add a formula to the sheet".to_owned(), any("xlsx"))
    );
}

#[test]
fn discover_adds_its_request() {
    let place = TestHome::new();
    let mut screen = place.open(120, 36);
    screen.press("2").type_text("merge csv files").press("esc").wait_for("csv-tools");
    screen.press("m").wait_for("Add a golden query").wait_for("merge csv files").press("ctrl-s");
    screen.wait_for("added “merge csv files”");
    assert_eq!(queries(&place.file()).last().unwrap(), &("merge csv files".to_owned(), any("csv-tools")));
    screen
        .press("m")
        .wait_for("Add a golden query")
        .press("ctrl-s")
        .wait_for("the golden set was not changed");
    screen.press("esc 6").wait_for("merge csv files").press("G k").press("enter").wait_for("Results");
}

#[test]
fn quitting_with_typed_text_is_confirmed() {
    let place = TestHome::new();
    let mut screen = place.open(120, 36);
    screen.press("6").wait_for("failing first");
    screen.press("w").wait_for("Draft of pdf-tables").type_text(" Invoices too.");
    screen
        .press("ctrl-c")
        .wait_for("Quit the workbench?")
        .wait_for("The draft of pdf-tables has not been saved.");
    assert_eq!(screen.take_outside(), []);
    screen.press("esc").wait_for("Draft of pdf-tables").wait_for("Invoices too.");
    screen.press("ctrl-c Q");
    assert_eq!(screen.take_outside(), [AppCommand::Quit]);
    drop(screen);

    let mut screen = place.open(120, 36);
    screen
        .press("6")
        .wait_for("failing first")
        .press("n")
        .wait_for("Add a golden query")
        .type_text("clean a csv");
    screen
        .press("ctrl-c")
        .wait_for("The golden query has not been saved.")
        .press("esc")
        .wait_for("clean a csv");
    screen.press("esc esc ctrl-c");
    assert_eq!(screen.take_outside(), [AppCommand::Quit], "nothing typed is left");
}

#[test]
fn a_golden_query_of_an_unknown_skill_is_added_only_on_request() {
    let place = TestHome::new();
    let mut screen = place.open(120, 36);
    screen.press("6").wait_for("failing first").press("n").wait_for("Add a golden query");
    screen.press("ctrl-u").type_text("clean a csv").press("tab").press("ctrl-u").type_text("pdf-table");
    screen.press("ctrl-s").wait_for("skill `pdf-table` (similar: pdf-tables").wait_for("Ctrl-S again");
    screen.press("ctrl-s").wait_until("added", |screen| !screen.contains("Add a golden query"));
}

#[test]
fn key_for_the_explanation_is_in_the_small_footer() {
    let place = TestHome::new();
    let mut screen = place.open(80, 24);
    screen.press("1").wait_for("W why");
    screen.press("2").press("i").type_text("extract tables").press("enter").wait_for("W why");
}

#[test]
fn draft_reports_that_the_file_changed_on_disk() {
    let place = TestHome::new();
    let mut screen = place.open(120, 36);
    screen.press("6").wait_for("failing first");
    screen.press("w").wait_for("Draft of pdf-tables").type_text(" Invoices too.");
    let skill = place.home.path().join("repo/skills/pdf-tables/SKILL.md");
    let text = std::fs::read_to_string(&skill).unwrap();
    std::fs::write(&skill, text.replace("rows and columns.", "sheets.")).unwrap();
    screen.wait_for("The file changed on disk").wait_for("Invoices too.");
    screen.press("ctrl-s").wait_for("current one? Ctrl-S confirms");
    screen.wait_for("Extracts tables from PDF files into sheets.");
    screen.press("esc ctrl-r").wait_until("no notice", |screen| !screen.contains("changed on disk"));
    screen.press("ctrl-s").wait_for("Write this description? Ctrl-S").press("ctrl-s");
    screen.wait_for("Description written");
    let text = std::fs::read_to_string(&skill).unwrap();
    assert!(text.contains("rows and columns. Invoices too.\n---\n"), "{text}");
}

#[test]
fn a_draft_replaces_only_what_was_shown() {
    let place = TestHome::new();
    // Without a watcher, only the comparison while writing notices the change.
    let mut screen = place.open_watching(false, 120, 36);
    screen.press("6").wait_for("failing first");
    screen.press("w").wait_for("Draft of pdf-tables").type_text(" Invoices too.");
    screen.press("ctrl-s").wait_for("Write this description?");
    let skill = place.home.path().join("repo/skills/pdf-tables/SKILL.md");
    let text = std::fs::read_to_string(&skill).unwrap();
    let others = text.replace("rows and columns.", "sheets.");
    std::fs::write(&skill, &others).unwrap();
    screen.press("ctrl-s").wait_for("Not written: the file changed on disk");
    screen.wait_for("Extracts tables from PDF files into sheets.").wait_for("Invoices too.");
    assert_eq!(std::fs::read_to_string(&skill).unwrap(), others);
    // The comparison with the present text may be confirmed.
    screen.press("ctrl-s").wait_for("current one? Ctrl-S confirms").press("ctrl-s");
    screen.wait_for("Description written");
    assert_eq!(std::fs::read_to_string(&skill).unwrap(), text.replace("columns.", "columns. Invoices too."));
}

#[test]
fn a_draft_shows_the_golden_set_while_typing() {
    let place = TestHome::new();
    let mut screen = place.open(140, 40);
    screen.press("6").wait_for("failing first");
    screen.press("w").wait_for("Draft of pdf-tables").type_text(" Makes a sheet of a statement.");
    screen.wait_until("measured", |screen| {
        screen.contains("1 won") && !screen.contains("updating") && !screen.contains("measuring")
    });
    insta::assert_snapshot!("draft-140x40", screen.screen());
    screen.press("ctrl-b");
    let copied = format!("{:?}", screen.take_outside());
    assert!(copied.contains("Rewrite the description of the skill `pdf-tables`"), "{copied}");
    screen
        .press("ctrl-s")
        .wait_for("Write this description?")
        .press("ctrl-s")
        .wait_for("Description written");
    let skill = place.home.path().join("repo/skills/pdf-tables/SKILL.md");
    let text = std::fs::read_to_string(skill).unwrap();
    assert!(text.contains("rows and columns. Makes a sheet of a statement.\n---\n"), "{text}");
    screen.wait_until("compared with what was written", |screen| {
        !screen.contains("updating") && !screen.contains("measuring") && !screen.contains("▲ +0.125")
    });
    screen.resize(80, 24);
    insta::assert_snapshot!("draft-80x24", screen.screen());
}
