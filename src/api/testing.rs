//! Small catalogs for the unit tests of this crate.

use std::path::PathBuf;
use std::sync::Arc;

use skills_registry::{Catalog, Entry, Root, RootOrigin, RootState};
use skills_skill::{
    Classification, Clients, Digest, EffectMode, Finding, Invocation, Kind, Properties, RefusalReason,
    RejectedBundle, Role, Severity, Skill, SkillId, Status, WithOrigin,
};

/// Returns a catalog of `(id, name)` in `/skills`, with default properties.
pub fn catalog(skills: &[(&str, &str)]) -> Catalog {
    let entries =
        skills.iter().map(|(id, name)| Entry { skill: Arc::new(skill(id, name)), root: 0 }).collect();
    let root = Root {
        path: "/skills".into(),
        label: "/skills".into(),
        project_label: None,
        of_project: false,
        origin: RootOrigin::Argument,
        state: RootState::Present,
        live: false,
    };
    Catalog { generation: 1, roots: vec![root], entries, ..Catalog::default() }
}

/// Returns a skill with only an id and a name.
pub fn skill(id: &str, name: &str) -> Skill {
    let root_dir = PathBuf::from("/skills").join(id);
    Skill {
        id: SkillId::new(id),
        name: name.into(),
        description: format!("What {name} does"),
        location: root_dir.join("SKILL.md"),
        root_dir,
        kind: WithOrigin::inferred(Kind::HostKnowledge),
        status: WithOrigin::inferred(Status::Stable),
        domain: None,
        tags: Vec::new(),
        requires: Vec::new(),
        classification: Classification {
            role: WithOrigin::inferred(Role::Procedure),
            invocation: WithOrigin::inferred(Invocation::Direct),
            attach_targets: Vec::new(),
            effect_mode: WithOrigin::inferred(EffectMode::Enrich),
        },
        properties: Properties::default(),
        clients: Clients::default(),
        digest: Digest::of(id.as_bytes()),
        bytes: 1,
        modified_ms: 0,
        body_line: 1,
        body_lines: 0,
        has_body: false,
        findings: Vec::new(),
        real: None,
    }
}

/// Returns a rejected bundle in `/skills`.
pub fn refused(id: &str, why: &str) -> RejectedBundle {
    let finding = Finding {
        code: "no-description".into(),
        severity: Severity::Error,
        field: Some("description".into()),
        file: "SKILL.md".into(),
        span: None,
        message: why.into(),
        help: "write one".into(),
        fixable: false,
    };
    RejectedBundle {
        id: SkillId::new(id),
        location: PathBuf::from("/skills").join(id).join("SKILL.md"),
        reason: RefusalReason::NoDescription,
        findings: vec![finding],
    }
}
