//! A few skills with every role and state, and helpers that send requests.
#![allow(dead_code, reason = "each test file uses its part")]

use skills_discovery::{Answer, Document, Request, Router, Weights};
use skills_skill::{AttachTarget, EffectMode, IndexText, Invocation, Role, SkillId, Status};

#[must_use]
pub fn with_body(document: Document, headings: &[&str], body: &str) -> Document {
    let headings = headings.iter().map(|h| (*h).to_owned()).collect();
    Document { text: Some(IndexText { headings, body: body.to_owned() }), ..document }
}

#[must_use]
pub fn documents() -> Vec<Document> {
    let domain = |d: Document, name: &str| Document { domain: Some(name.to_owned()), ..d };
    let tables = Document::new(
        "pdf-tables",
        "pdf-tables",
        "Extracts tables from PDF files into spreadsheets. Not for filling in forms.",
    );
    let shadowed = Document { id: SkillId::new("pdf-tables@0a1b2c3d"), ..tables.clone() };
    vec![
        with_body(
            domain(tables, "documents"),
            &["Borderless grids"],
            "A grid without borders needs a guess.",
        ),
        shadowed.shadowed("~/.claude/skills"),
        with_body(
            domain(
                Document::new("pdf-forms", "pdf-forms", "Fills in forms of a PDF with given values."),
                "documents",
            ),
            &["Fields"],
            "Check boxes and text fields.",
        ),
        domain(
            Document {
                role: Role::Utility,
                tags: vec!["data".to_owned()],
                ..Document::new("csv-tools", "csv-tools", "Converts and sorts columns of a CSV table.")
            },
            "documents",
        ),
        Document::new("columns", "newspaper", "Writes columns for a newspaper from notes."),
        Document {
            role: Role::Sidecar,
            invocation: Invocation::Attach,
            attach_targets: vec![AttachTarget::Output, AttachTarget::Artifact],
            ..Document::new(
                "table-audit",
                "table-audit",
                "Checks the rows of a table that another step made.",
            )
        },
        Document {
            status: Status::Deprecated,
            ..Document::new("old-pdf", "old-pdf", "Extracts text and tables from a PDF the old way.")
        },
        domain(
            Document {
                effect_mode: EffectMode::ReadOnly,
                ..Document::new("lamp-state", "lamp-state", "Tells which lamps of the house are on.")
            },
            "house",
        ),
        domain(
            Document {
                role: Role::Utility,
                ..Document::new("set-table", "set-table", "Lays the dinner table of the house for guests.")
            },
            "house",
        ),
        Document::new("weekly-report", "weekly-report", "Writes the weekly report of a team from its notes."),
        Document::new("biaoge", "biaoge", "从文件中提取表格并保存。"),
    ]
}

/// A router over them.
#[must_use]
pub fn router() -> Router {
    let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
    router.update(documents(), &[]);
    router
}

/// Sends a request.
#[must_use]
pub fn ask(router: &Router, intent: &str) -> Answer {
    router.discover(&Request { intent: intent.to_owned(), ..Request::default() }).unwrap()
}

/// Sends a request whose last word may be unfinished.
#[must_use]
pub fn typing(router: &Router, intent: &str) -> Answer {
    router.discover(&Request { intent: intent.to_owned(), typing: true, ..Request::default() }).unwrap()
}
