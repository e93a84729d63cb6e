//! Checks statements of the documents: rules, dependencies, links, exit codes.

use std::path::Path;

use skills_skill::lint::rules;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The first cell of every table row, without backticks.
fn first_cells(page: &str) -> Vec<String> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    rows.filter_map(|line| line.split('|').nth(1))
        .map(|cell| cell.trim().trim_matches('`').to_owned())
        .collect()
}

#[test]
fn every_lint_rule_is_documented_with_its_severity() {
    let page = read("docs/skills.md");
    for rule in rules::ALL {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", rule.code)));
        let row = row.unwrap_or_else(|| panic!("docs/skills.md has no row for {}", rule.code));
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[2], rule.severity.to_string(), "{}", rule.code);
        assert_eq!(format!("{}.", cells[3]), rule.subject, "{}", rule.code);
        assert_eq!(cells[4] == "yes", rule.fixable, "{}", rule.code);
    }
    let rules_section = page.split("## Rules").nth(1).unwrap();
    let known = |cell: &String| cell == "code" || rules::ALL.iter().any(|rule| rule.code == cell);
    assert_eq!(
        first_cells(rules_section).iter().find(|cell| !known(cell)),
        None,
        "a rule that no longer exists"
    );
}

/// Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn findings_take_their_codes_from_the_table_of_rules() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    for file in files.iter().filter(|file| !file.ends_with("api/testing.rs")) {
        let text = std::fs::read_to_string(file).unwrap();
        let program = text.split("#[cfg(test)]").next().unwrap();
        for code in program.split("code: \"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(rules::by_code(code).is_some(), "{}: no rule is called {code}", file.display());
        }
    }
}

#[test]
fn every_direct_dependency_has_a_row_with_its_reason() {
    let manifest = read("Cargo.toml");
    let rows = first_cells(read("README.md").split("## Dependencies").nth(1).unwrap());
    let named = |name: &str| rows.iter().any(|row| row.split([',', ' ', '`']).any(|word| word == name));
    let (mut section, mut seen) = ("", 0);
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        } else if section == "[workspace.dependencies]"
            && line.contains('=')
            && !line.starts_with('#')
            && !line.contains("path = ")
        {
            let name = line.split([' ', '=']).next().unwrap();
            let package =
                line.split("package = \"").nth(1).map_or(name, |rest| rest.split('"').next().unwrap());
            assert!(named(package), "README.md does not say why {package} is needed");
            seen += 1;
        }
    }
    assert!(seen > 50, "only {seen} dependencies were found");
}

#[test]
fn alert_rules_and_dashboard_name_existing_metrics() {
    let metrics = skills_base::telemetry::Metrics::default();
    let one = |state: &str| [(state.to_owned(), 1)].into();
    metrics.set_run_gauges(&skills_base::telemetry::RunGauges {
        runs: one("failed"),
        workers: one("live"),
        ..skills_base::telemetry::RunGauges::default()
    });
    metrics.run_moved("failed");
    metrics.step("completed", std::time::Duration::from_millis(1));
    metrics.store_error("busy");
    metrics.labeled_run("failed", "env", "prod");
    let text = metrics.text().unwrap();
    let known: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let dashboard: serde_json::Value = serde_json::from_str(&read("assets/monitoring/grafana.json")).unwrap();
    assert!(dashboard["panels"].as_array().unwrap().len() >= 10);
    for file in ["assets/monitoring/grafana.json", "assets/monitoring/alerts.yaml"] {
        let text = read(file);
        let named = text.match_indices("agent_skills_").map(|(at, _)| {
            text[at..].split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap()
        });
        let mut seen = 0;
        for name in named {
            let base = name.trim_end_matches("_total").trim_end_matches("_bucket");
            assert!(known.contains(&base), "{file} uses {name}, which does not exist: {known:?}");
            seen += 1;
        }
        assert!(seen >= 6, "{file}: {seen}");
    }
}

#[test]
fn links_between_pages_resolve() {
    let docs = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")).unwrap();
    let names = docs.map(|file| format!("docs/{}", file.unwrap().file_name().display()));
    let pages = names.filter(|name| Path::new(name).extension().is_some_and(|e| e == "md"));
    for page in pages.chain(["README.md".to_owned()]) {
        let folder = Path::new(&page).parent().unwrap();
        for target in read(&page)
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split([')', '#']).next().map(str::to_owned))
        {
            // Pictures have a test of their own, which draws them.
            let outside =
                target.is_empty() || target.contains("://") || target.starts_with("assets/pictures/");
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(&target);
            assert!(outside || path.exists(), "{page} links to {target}, which is not there");
        }
    }
}
