//! Catalogs and skill details made by hand.

use std::path::PathBuf;
use std::sync::Arc;

use skills_api::{FileEntry, LevelTokens, SkillDetail, SkillSummary};
use skills_registry::{Catalog, Entry, Root, RootOrigin, RootState, Shadowed, TrustSummary};
use skills_skill::{
    Classification, Clients, Digest, EffectMode, Finding, Invocation, Kind, Properties, RefusalReason,
    RejectedBundle, Role, Severity, Skill, SkillId, Span, Status, WithOrigin,
};

pub fn root(label: &str, live: bool, state: RootState) -> Root {
    Root {
        path: PathBuf::from(format!("/home/ana/{}", label.trim_start_matches("~/"))),
        label: label.to_owned(),
        project_label: None,
        of_project: false,
        origin: RootOrigin::User { client: "claude-code".into() },
        state,
        live,
    }
}

pub fn finding(severity: Severity, code: &str, field: &str, line: u32, message: &str, help: &str) -> Finding {
    Finding {
        code: code.into(),
        severity,
        field: Some(field.into()),
        file: "SKILL.md".into(),
        span: Some(Span { line, column: 1, offset: 0, length: 4 }),
        message: message.into(),
        help: help.into(),
        fixable: false,
    }
}

pub fn skill(id: &str, role: Role, description: &str, findings: Vec<Finding>) -> Skill {
    let root_dir = PathBuf::from(format!("/home/ana/.claude/skills/{id}"));
    Skill {
        id: SkillId::new(id),
        name: id.to_owned(),
        description: description.to_owned(),
        location: root_dir.join("SKILL.md"),
        root_dir,
        kind: WithOrigin::inferred(Kind::Tool),
        status: WithOrigin::inferred(Status::Stable),
        domain: None,
        tags: Vec::new(),
        requires: Vec::new(),
        classification: Classification {
            role: if role == Role::Procedure {
                WithOrigin::inferred(role)
            } else {
                WithOrigin::explicit(role)
            },
            invocation: WithOrigin::inferred(Invocation::Direct),
            attach_targets: Vec::new(),
            effect_mode: WithOrigin::explicit(EffectMode::ReadOnly),
        },
        properties: Properties { allowed_tools: vec!["Read".into(), "Bash".into()], ..Properties::default() },
        clients: Clients::default(),
        digest: Digest::of(id.as_bytes()),
        bytes: 4_000,
        modified_ms: 1_700_000_000_000,
        body_line: 6,
        body_lines: 40,
        has_body: true,
        findings,
        real: None,
    }
}

fn warned(count: u32) -> Vec<Finding> {
    (0..count)
        .map(|i| {
            finding(
                Severity::Warning,
                "name-not-folder",
                "name",
                2 + i,
                "the name is not the folder's",
                "rename one of them",
            )
        })
        .collect()
}

/// Nine skills of three roots, a shadowed and a refused one, as on a real machine.
pub fn catalog() -> Catalog {
    let mut catalog = Catalog {
        generation: 1,
        roots: vec![
            root("~/.claude/skills", false, RootState::Present),
            root("~/.agents/skills", true, RootState::Present),
            root("~/.codex/skills", false, RootState::Missing),
        ],
        ..Catalog::default()
    };
    let procedure = Role::Procedure;
    let mut old = skill("old-pdf", procedure, "Old.", Vec::new());
    old.status = WithOrigin::explicit(Status::Deprecated);
    let broken = finding(Severity::Error, "description-too-long", "description", 3, "too long", "shorten it");
    let first = [
        skill("pdf-tables", procedure, "Extracts tables from PDF files.", Vec::new()),
        skill("pdf-forms", Role::Utility, "Fills PDF forms.", warned(2)),
        skill("pdf-merge", Role::Utility, "Merges PDF files.", Vec::new()),
        old,
        skill("表格提取", procedure, "从 PDF 中提取表格。", Vec::new()),
    ];
    let second = [
        skill("invoice-pdf", procedure, "Reads invoices.", Vec::new()),
        skill("po-diff", Role::Sidecar, "Compares purchase orders.", Vec::new()),
        skill("report-pdf", procedure, "Writes reports.", vec![broken]),
        skill("xlsx", procedure, "Reads spreadsheets.", Vec::new()),
    ];
    for (root, skills) in [(0, first.to_vec()), (1, second.to_vec())] {
        catalog.entries.extend(skills.into_iter().map(|s| Entry { skill: Arc::new(s), root }));
    }
    let copy = skill("pdf-tables@3f9a01c2", procedure, "Extracts tables.", Vec::new());
    catalog.shadowed.push(Shadowed {
        skill: Arc::new(copy),
        root: 1,
        lost: SkillId::new("pdf-tables"),
        winner: PathBuf::from("/home/ana/.claude/skills/pdf-tables/SKILL.md"),
        identical: false,
    });
    catalog.refused.push(RejectedBundle {
        id: SkillId::new("pdf-notes"),
        location: PathBuf::from("/home/ana/.claude/skills/pdf-notes/SKILL.md"),
        reason: RefusalReason::NoDescription,
        findings: vec![finding(
            Severity::Error,
            "no-description",
            "description",
            1,
            "there is no description",
            "say in a sentence what the skill does and when to use it",
        )],
    });
    catalog
}

pub const BODY: &str = "# PDF tables

Turns a table in a PDF into rows that a program can read.

## When to use

- a table in a PDF must become rows
- merged cells and headers over two lines must survive
- not for scans: see [ocr-pages](../ocr-pages/SKILL.md)

## Steps

1. Find the tables: ruled ones first, then by white space.
2. Run the extraction; it writes nothing outside its folder.

```python
# pages are counted from 1
from pathlib import Path
rows = extract(Path(\"in.pdf\"), pages=[1, 2])
assert rows, \"no table found: ask, do not guess\"
```

3. Read [references/layout.md](references/layout.md) when columns drift.
4. Check: every row has as many cells as the header.

| option | what it does | default |
|---|---|---|
| `--pages` | pages to read | all |
| `--merge` | keeps merged cells | on |
";

pub const FRONT: &str = "---
name: pdf_tables
description: Extracts tables from PDF files into CSV or spreadsheet rows, keeping merged cells and headers.
allowed-tools: Read, Bash
---
";

/// Everything about a skill of [`catalog`].
pub fn detail(id: &str) -> SkillDetail {
    let catalog = catalog();
    let skill = Arc::clone(catalog.by_id(id).unwrap());
    let class = &skill.classification;
    let summary = SkillSummary {
        skill_id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        role: class.role.value,
        invocation: class.invocation.value,
        effect_mode: class.effect_mode.value,
        status: skill.status.value.clone(),
        kind: skill.kind.value,
        domain: None,
        tags: Vec::new(),
        attach_targets: Vec::new(),
        inferred: vec!["role".into(), "kind".into()],
        location: skill.location.clone(),
        root: "~/.claude/skills".into(),
        digest: skill.digest,
        findings: 1,
        shadowed_by: None,
        has_contract: false,
        trusted: TrustSummary::No,
        needs_approval: false,
    };
    let file = |path: &str, bytes, executable| FileEntry { path: path.into(), bytes, executable };
    SkillDetail {
        summary,
        skill,
        source: format!("{FRONT}{BODY}"),
        body: BODY.to_owned(),
        findings: vec![finding(
            Severity::Warning,
            "name-not-folder",
            "name",
            2,
            "name `pdf_tables` is not the folder's name `pdf-tables`",
            "clients disagree which one counts: give both the same name",
        )],
        files: vec![
            file("assets/sample.pdf", 24_000, false),
            file("references/layout.md", 4_400, false),
            file("references/merged.md", 2_900, false),
            file("scripts/extract.py", 9_800, true),
        ],
    }
}

pub fn levels(id: &str, l1: u32, l2: u32) -> LevelTokens {
    LevelTokens {
        skill_id: SkillId::new(id),
        l1,
        l2,
        l3: 5_000,
        l1_estimated: false,
        l2_estimated: false,
        l3_estimated: false,
        l3_files: 4,
        l3_bytes: 41_100,
    }
}
