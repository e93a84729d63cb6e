//! Results of the router with consistent values: each row sums to its columns, each hit to its score.

use skills_discovery::{
    Answer, Attachable, Breakdown, BreakdownTerm, Confidence, Correction, Excluded, ExcludedWhy, Fit,
    FitVerdict, Group, Hit, Margin, Mark, MatcherReport, MatcherState, QueryWord, ScoreComponent, TermKind,
    VerdictReason, WordRow,
};
use skills_skill::{AttachTarget, EffectMode, Role, SkillId};

pub const INTENT: &str = "turn the table in this pdf into a spreadsheet";

/// Words of an intent, split at spaces; `stop` and `unknown` by their text.
pub fn words(intent: &str, stop: &[&str], unknown: &[&str]) -> Vec<QueryWord> {
    let mut at = 0;
    let mut out = Vec::new();
    for word in intent.split(' ') {
        let (start, end) = (at as u32, (at + word.len()) as u32);
        at += word.len() + 1;
        let (stop, known) = (stop.contains(&word), !unknown.contains(&word));
        out.push(QueryWord { start, end, stop, known, correction: None });
    }
    out
}

/// Marks of each of these words in a text, wherever they occur.
pub fn marks(text: &str, words: &[(&str, ScoreComponent)]) -> Vec<Mark> {
    let mut out: Vec<Mark> = words
        .iter()
        .flat_map(|(word, signal)| {
            text.match_indices(word).map(|(start, found)| Mark {
                start: start as u32,
                end: (start + found.len()) as u32,
                signal: *signal,
            })
        })
        .collect();
    out.sort_by_key(|m| m.start);
    out
}

type GivenRow = (&'static str, Option<usize>, [f64; 5]);

/// A breakdown from its rows; rule parts go to the row `rules`.
pub fn breakdown(rows: &[GivenRow], rules: &[(TermKind, &str, f64)]) -> Breakdown {
    let mut words: Vec<WordRow> = rows
        .iter()
        .map(|(label, query_word, by_signal)| WordRow {
            label: (*label).to_owned(),
            query_word: *query_word,
            by_signal: *by_signal,
            sum: by_signal.iter().sum(),
        })
        .collect();
    let mut parts = Vec::new();
    let signals = [
        ScoreComponent::Name,
        ScoreComponent::Description,
        ScoreComponent::Body,
        ScoreComponent::Semantic,
        ScoreComponent::Rule,
    ];
    for (at, row) in words.iter().enumerate() {
        for (signal, value) in signals.into_iter().zip(row.by_signal).filter(|(_, v)| *v != 0.0) {
            let label = row.label.clone();
            parts.push(BreakdownTerm { row: at, signal, kind: TermKind::Term, field: None, label, value });
        }
    }
    if !rules.is_empty() {
        let row = words.len();
        let sum: f64 = rules.iter().map(|(.., v)| v).sum();
        for (kind, label, value) in rules {
            let label = (*label).to_owned();
            parts.push(BreakdownTerm {
                row,
                signal: ScoreComponent::Rule,
                kind: *kind,
                field: None,
                label,
                value: *value,
            });
        }
        words.push(WordRow {
            label: "rules".into(),
            query_word: None,
            by_signal: [0.0, 0.0, 0.0, 0.0, sum],
            sum,
        });
    }
    let mut sums = [0.0; 5];
    for row in &words {
        for (sum, value) in sums.iter_mut().zip(row.by_signal) {
            *sum += value;
        }
    }
    Breakdown { rows: words, signals: sums, terms: parts }
}

pub fn hit(id: &str, group: Group, description: &str, status: &str, breakdown: Breakdown) -> Hit {
    let score: f64 = breakdown.signals.iter().sum();
    let message = [
        ("table", ScoreComponent::Description),
        ("PDF", ScoreComponent::Description),
        ("spreadsheet", ScoreComponent::Description),
        ("Turns", ScoreComponent::Description),
        ("rows", ScoreComponent::Semantic),
        ("columns", ScoreComponent::Semantic),
    ];
    Hit {
        skill_id: SkillId::new(id),
        name: id.to_owned(),
        score,
        z: score - breakdown.signals[4],
        role: if group == Group::Secondary { Role::Utility } else { Role::Procedure },
        effect_mode: EffectMode::ReadOnly,
        reason: "name and description contain “table” and “pdf”".to_owned(),
        status: status.to_owned(),
        group,
        description: description.to_owned(),
        name_marks: marks(id, &[("pdf", ScoreComponent::Name), ("tables", ScoreComponent::Name)]),
        description_marks: marks(description, &message),
        exclusion_note: None,
        breakdown,
        needs_approval: None,
        rank: None,
    }
}

const RULES: [(TermKind, &str, f64); 2] =
    [(TermKind::RuleRole, "procedure", 0.10), (TermKind::RuleStatus, "stable", 0.06)];

fn pdf_tables() -> Hit {
    let rows: [GivenRow; 5] = [
        ("table", Some(2), [0.49, 0.30, 0.03, 0.21, 0.0]),
        ("pdf", Some(5), [0.61, 0.22, 0.02, 0.17, 0.0]),
        ("spreadsheet", Some(8), [0.0, 0.29, 0.04, 0.20, 0.0]),
        ("table+pdf", None, [0.0, 0.10, 0.0, 0.0, 0.0]),
        ("turn", Some(0), [0.0, 0.0, 0.01, 0.03, 0.0]),
    ];
    let description = "Extracts tables from PDF files into CSV or spreadsheet rows, keeping merged cells and \
        headers. Use when a table in a PDF must become rows or columns. Not for scanned pages: see ocr-pages.";
    hit("pdf-tables", Group::Primary, description, "stable", breakdown(&rows, &RULES))
}

fn xlsx() -> Hit {
    let rows: [GivenRow; 4] = [
        ("spreadsheet", Some(8), [0.0, 0.60, 0.06, 0.40, 0.0]),
        ("table", Some(2), [0.0, 0.20, 0.05, 0.10, 0.0]),
        ("pdf", Some(5), [0.0, 0.0, 0.02, 0.05, 0.0]),
        ("turn", Some(0), [0.0, 0.0, 0.0, 0.02, 0.0]),
    ];
    let description =
        "Reads, writes and edits spreadsheet files: formulas, charts, pivot tables, number formats.";
    hit("xlsx", Group::Primary, description, "stable", breakdown(&rows, &RULES))
}

fn simple(id: &str, group: Group, description: &str, status: &str, sums: [f64; 4]) -> Hit {
    let [name, descr, body, semantic] = sums;
    let rows: [GivenRow; 2] = [
        ("pdf", Some(5), [name, descr / 2.0, body, semantic / 2.0, 0.0]),
        ("table", Some(2), [0.0, descr / 2.0, 0.0, semantic / 2.0, 0.0]),
    ];
    let rules = if group == Group::Primary { &RULES[..] } else { &RULES[1..] };
    hit(id, group, description, status, breakdown(&rows, rules))
}

/// A result that fits, with every group.
pub fn fits() -> Answer {
    let results = vec![
        pdf_tables(),
        xlsx(),
        simple(
            "doc-convert",
            Group::Primary,
            "Turns Word, HTML and PDF documents into Markdown and back, pictures included.",
            "experimental",
            [0.0, 0.65, 0.06, 0.50],
        ),
        simple(
            "pdf-forms",
            Group::Secondary,
            "Fills and flattens PDF forms; lists the fields of a form.",
            "stable",
            [0.60, 0.20, 0.0, 0.26],
        ),
        simple(
            "csv-tools",
            Group::Secondary,
            "Joins, filters and reshapes CSV tables; opens them as a spreadsheet.",
            "stable",
            [0.0, 0.48, 0.05, 0.40],
        ),
        simple(
            "report-builder",
            Group::Primary,
            "Builds a PDF report with charts and tables from query results and a template.",
            "stable",
            [0.0, 0.40, 0.10, 0.25],
        ),
    ];
    Answer {
        results,
        attachable: vec![
            Attachable {
                skill_id: SkillId::new("table-audit"),
                name: "table-audit".into(),
                score: 1.05,
                attach_targets: vec![AttachTarget::Output, AttachTarget::Artifact],
                results_before: 4,
            },
            Attachable {
                skill_id: SkillId::new("cost-watch"),
                name: "cost-watch".into(),
                score: 0.4,
                attach_targets: vec![AttachTarget::Run],
                results_before: 6,
            },
        ],
        excluded: vec![
            excluded("old-pdf", 1.2, "deprecated", ExcludedWhy::Deprecated),
            excluded(
                "pdf-tables@3f9a01c2",
                2.8,
                "a copy, shadowed by ~/.claude/skills",
                ExcludedWhy::Shadowed("~/.claude/skills".into()),
            ),
        ],
        below_limit: 0,
        fit: Fit::High,
        verdict: FitVerdict {
            skill_id: Some(SkillId::new("pdf-tables")),
            fit: Fit::High,
            reason: VerdictReason::Fits,
            language: None,
            sentence: "pdf-tables fits, confidence high".into(),
        },
        confidence: Some(Confidence {
            fit: Fit::High,
            p_fit: 0.97,
            fit_threshold: 1.50,
            medium_threshold: 2.0,
            lead: Margin::Clear,
        }),
        words: words(INTENT, &["the", "in", "this", "into", "a"], &[]),
        matchers: vec![link("lexical", MatcherState::Ran), link("semantic", MatcherState::Ran)],
        profile: "bodies".into(),
        hints: Vec::new(),
        skills: 312,
        bodies_missing: 0,
        took_us: 612,
    }
}

pub fn link(name: &str, state: MatcherState) -> MatcherReport {
    MatcherReport { matcher: name.to_owned(), state, candidates: 40, took_us: 200 }
}

fn excluded(id: &str, score: f64, why: &str, reason: ExcludedWhy) -> Excluded {
    Excluded { skill_id: SkillId::new(id), score, why: why.to_owned(), reason }
}

pub const NO_FIT_INTENT: &str = "will it rain in oslo tomorow";

/// Nothing fits, a matcher failed, bodies are missing, a word was corrected.
pub fn none_fits() -> Answer {
    let climate: [GivenRow; 2] =
        [("rain", Some(2), [0.0, 0.0, 0.19, 0.0, 0.0]), ("tomorrow", Some(5), [0.0, 0.12, 0.0, 0.0, 0.0])];
    let mut results = vec![
        hit(
            "climate-report",
            Group::Primary,
            "Writes the monthly climate report from station data.",
            "stable",
            breakdown(&climate, &RULES),
        ),
        hit(
            "trip-planner",
            Group::Primary,
            "Plans a trip: trains, hotels and what to pack for the weather there.",
            "stable",
            breakdown(&[("rain", Some(2), [0.0, 0.0, 0.05, 0.0, 0.0])], &RULES),
        ),
    ];
    "“rain” only in its body".clone_into(&mut results[0].reason);
    let mut words = words(NO_FIT_INTENT, &["will", "it", "in"], &["oslo"]);
    words[5].correction = Some(Correction::Typo("tomorrow".into()));
    Answer {
        results,
        attachable: Vec::new(),
        excluded: Vec::new(),
        below_limit: 0,
        fit: Fit::None,
        verdict: FitVerdict {
            skill_id: Some(SkillId::new("climate-report")),
            sentence: "no skill fits".into(),
            ..FitVerdict::default()
        },
        confidence: Some(Confidence {
            fit: Fit::None,
            p_fit: 0.02,
            fit_threshold: 1.50,
            medium_threshold: 2.0,
            lead: Margin::Ambiguous,
        }),
        words,
        matchers: vec![
            link("lexical", MatcherState::Ran),
            link("semantic", MatcherState::Failed("skill-embed-128.bin: checksum differs".into())),
        ],
        profile: "bodies".into(),
        hints: Vec::new(),
        skills: 14_639,
        bodies_missing: 6_227,
        took_us: 400,
    }
}
