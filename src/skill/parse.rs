//! Parses bytes to a [`Skill`]: as leniently as real clients, with a finding for every repair.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::classify::classify;
use super::fence::{self, FenceDefect};
use super::finding_builder::{Notes, slice};
use super::frontmatter::{ClassificationForm, Frontmatter, Metadata};
use super::lenient::Reader;
use super::lint::{self, LintInput, rules};
use super::yaml::{Content, Entry, Node};
use super::{
    Clients, Digest, Finding, Kind, Properties, RefusalReason, RejectedBundle, Skill, SkillId, Status,
    WithOrigin, repair, text, yaml,
};
use skills_base::paths::escaped;

/// Maximum size of a file in bytes.
pub const MAX_BYTES: u64 = 2 << 20;

/// Parses a bundle's main file: `SKILL.md` (in upper or lower case) or a lone `skill.yaml`. Pure: `location` is not accessed;
/// `modified_ms` is in milliseconds since 1970-01-01 UTC.
///
/// The record's findings contain every repair and everything that follows from this file alone. What needs the disk is
/// left to the caller, see [`Skill::set_neighbors`].
///
/// # Errors
/// Returns a [`RejectedBundle`] for a file that is too large, not UTF-8 or at such a path, without valid frontmatter, or without a
/// description after all repairs; its last finding is the reason as text.
#[allow(
    clippy::result_large_err,
    reason = "a refusal is a record that is listed, not an error that is passed on"
)]
pub fn parse(location: &Path, bytes: &[u8], modified_ms: i64) -> Result<Skill, RejectedBundle> {
    let root_dir = location.parent().unwrap_or(Path::new("")).to_owned();
    let file = PathBuf::from(location.file_name().unwrap_or(OsStr::new("SKILL.md")));
    let place = SkillLocation { location, root_dir, file: &file };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(too_large(location, bytes.len() as u64));
    }
    if location.to_str().is_none() {
        let message = format!("the path is not UTF-8: {}", escaped(location));
        return Err(refusal(location, RefusalReason::NotUtf8, &rules::PATH_NOT_UTF8, message));
    }
    let source = match std::str::from_utf8(bytes) {
        Ok(source) => source,
        Err(error) => {
            let good = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
            let mut notes = Notes::new(&file, good);
            let message = format!("byte {} of the file is not UTF-8", error.valid_up_to() + 1);
            notes.add(&rules::NOT_UTF8, None, good.len()..good.len(), message);
            let text = String::from_utf8_lossy(bytes);
            let mut refusal = place.refuse_text(RefusalReason::NotUtf8, notes, &text);
            // Behind the first invalid byte, offsets in the text are not those in the file.
            for finding in &mut refusal.findings {
                finding.span = finding.span.filter(|span| (span.offset + span.length) as usize <= good.len());
            }
            return Err(refusal);
        }
    };
    let measured = FileMetrics { digest: Digest::of(bytes), bytes: bytes.len() as u64, modified_ms };
    if place.is_yaml() { contract(&place, source, &measured) } else { markdown(&place, source, &measured) }
}

/// Creates the rejection of a file that was not read because of its size.
pub(super) fn too_large(location: &Path, bytes: u64) -> RejectedBundle {
    let message = format!("the file has {bytes} bytes; the maximum is {MAX_BYTES} (2 MiB)");
    refusal(location, RefusalReason::TooLarge, &rules::FILE_TOO_LARGE, message)
}

/// Creates a rejection for a reason outside of the text.
pub(super) fn refusal(
    location: &Path,
    reason: RefusalReason,
    rule: &rules::Rule,
    message: String,
) -> RejectedBundle {
    let file = PathBuf::from(location.file_name().unwrap_or(OsStr::new("SKILL.md")));
    let mut notes = Notes::new(&file, "");
    notes.add(rule, None, None, message);
    SkillLocation { location, root_dir: location.parent().unwrap_or(Path::new("")).to_owned(), file: &file }
        .refuse(reason, notes)
}

/// The location of the file.
struct SkillLocation<'a> {
    location: &'a Path,
    root_dir: PathBuf,
    file: &'a Path,
}

impl SkillLocation<'_> {
    fn folder(&self) -> String {
        self.root_dir.file_name().map(|name| escaped(Path::new(name)).into_owned()).unwrap_or_default()
    }

    fn is_yaml(&self) -> bool {
        let extension = self.location.extension();
        extension.is_some_and(|e| e.eq_ignore_ascii_case("yaml") || e.eq_ignore_ascii_case("yml"))
    }

    fn refuse(&self, reason: RefusalReason, notes: Notes<'_>) -> RejectedBundle {
        let source = notes.source;
        self.refuse_text(reason, notes, source)
    }

    /// Creates the rejection of a file with this text, which clients may load. The reason is the last finding.
    fn refuse_text(&self, reason: RefusalReason, notes: Notes<'_>, text: &str) -> RejectedBundle {
        let mut findings = notes.in_order();
        let last = findings.len().saturating_sub(1);
        findings.splice(last..last, self.trust_findings(text));
        RejectedBundle {
            id: SkillId::new(self.folder()),
            location: self.location.to_owned(),
            reason,
            findings,
        }
    }

    /// Returns the findings about trust in a text without a record of its own: one that is refused, or whose frontmatter
    /// only Claude Code reads.
    fn trust_findings(&self, source: &str) -> Vec<Finding> {
        let fenced = fence::split(source);
        let for_client =
            lint::frontmatter_for_claude_code(source).filter(|_| fenced.yaml.is_empty() && !self.is_yaml());
        let mut frontmatter = for_client.unwrap_or(fenced.yaml);
        let start = source.len() - source.trim_start_matches('\u{feff}').len();
        let yaml = if self.is_yaml() { start..source.len() } else { frontmatter.clone() };
        let base = yaml.start;
        // Findings about the format are those of the caller.
        let mut format = Notes::new(self.file, source);
        let (root, to_file) = read_yaml(source, yaml, &mut format).unwrap_or_else(|()| {
            frontmatter = 0..0;
            (Node { value: Content::Map(Vec::new()), at: 0..0 }, ToFile(None))
        });
        let at = |range: &Range<usize>| to_file.to_file(range, base);
        let fields = Fields::read(&root, &at, &mut format);
        let measured = FileMetrics { digest: Digest::of(b""), bytes: 0, modified_ms: 0 };
        let skill =
            assemble(SkillId::new(self.folder()), String::new(), String::new(), self, fields, &measured);
        let body = (!self.is_yaml()).then_some(fenced.body.start);
        let mut notes = Notes::new(self.file, source);
        let subject = LintInput { skill: &skill, root: &root, at: &at, frontmatter };
        lint::check_trust(&subject, body, &mut notes);
        notes.finish()
    }
}

struct FileMetrics {
    digest: Digest,
    bytes: u64,
    modified_ms: i64,
}

fn markdown(
    place: &SkillLocation<'_>,
    source: &str,
    measured: &FileMetrics,
) -> Result<Skill, RejectedBundle> {
    let mut notes = Notes::new(place.file, source);
    if place.file != Path::new("SKILL.md") {
        let message = format!("the file has the name `{}`", place.file.display());
        notes.add(&rules::FILE_NAME_CASE, None, None, message);
    }
    let fenced = fence::split(source);
    note_fences(&fenced.defects, source, &mut notes);
    let yaml_start = fenced.yaml.start;
    let Ok((root, to_file)) = read_yaml(source, fenced.yaml.clone(), &mut notes) else {
        return Err(place.refuse(RefusalReason::BadFrontmatter, notes));
    };
    let at = |range: &Range<usize>| to_file.to_file(range, yaml_start);
    let fields = Fields::read(&root, &at, &mut notes);

    let has_fence = !fenced.defects.iter().any(|d| matches!(d, FenceDefect::NoFrontmatter(_)));
    let body = slice(source, fenced.body.clone());
    let folder = place.folder();
    let name = fields.top.name.clone().unwrap_or_else(|| {
        if has_fence {
            let message = format!("`name` is missing; the folder name `{folder}` is used");
            notes.add(&rules::NAME_MISSING, Some("name"), yaml_start..yaml_start, message);
        }
        folder.clone()
    });
    let description = fields.top.description.clone().or_else(|| {
        let place = root.get("description").map_or(yaml_start..yaml_start, |entry| at(&entry.key_at));
        let paragraph = text::first_paragraph(body);
        let is_blank = |entry: &Entry| match &entry.value.value {
            Content::Null => true,
            Content::Text(text) => text.trim().is_empty(),
            _ => false,
        };
        let is_empty = root.get("description").is_some_and(is_blank);
        let defect = if is_empty { "empty" } else { "missing" };
        let message = match &paragraph {
            Some(_) => format!(
                "`description` is {defect}; the first paragraph is used here; clients drop the skill, show \
                    different text, or show only the name"
            ),
            None => format!("`description` is {defect}, and the body has no paragraph to use instead"),
        };
        let misspelled = |entry: &&Entry| lint::near_key(&entry.key) == Some("description");
        let misspelled = root.entries().iter().find(misspelled).filter(|_| root.get("description").is_none());
        let finding = notes.add(&rules::DESCRIPTION_MISSING, Some("description"), place, message);
        if let Some(entry) = misspelled {
            finding.help = format!("Rename the key `{}` to `description`.", entry.key);
        } else if is_empty {
            "State what the skill does and when to use it; a model selects the skill by `description` alone."
                .clone_into(&mut finding.help);
        }
        paragraph
    });
    let Some(description) = description else {
        return Err(place.refuse(RefusalReason::NoDescription, notes));
    };
    let lines_before = slice(source, ..fenced.body.start).bytes().filter(|&b| b == b'\n').count();
    let mut skill = assemble(SkillId::new(folder), name, description, place, fields, measured);
    skill.body_line = u32::try_from(lines_before + 1).unwrap_or(u32::MAX);
    skill.body_lines = u32::try_from(lint::size::lines(body)).unwrap_or(u32::MAX);
    skill.has_body = !body.trim().is_empty();
    let body_start = fenced.body.start;
    let subject = LintInput { skill: &skill, root: &root, at: &at, frontmatter: fenced.yaml };
    lint::check(&subject, fenced.body, &mut notes);
    if !has_fence && lint::frontmatter_for_claude_code(source).is_some() {
        notes.extend(place.trust_findings(source));
    } else {
        lint::check_trust(&subject, Some(body_start), &mut notes);
    }
    skill.findings = notes.finish();
    Ok(skill)
}

/// Parses a lone `skill.yaml`: the id is that of the contract, everything else is as in frontmatter.
fn contract(
    place: &SkillLocation<'_>,
    source: &str,
    measured: &FileMetrics,
) -> Result<Skill, RejectedBundle> {
    let mut notes = Notes::new(place.file, source);
    let start = source.len() - source.trim_start_matches('\u{feff}').len();
    let Ok((root, to_file)) = read_yaml(source, start..source.len(), &mut notes) else {
        return Err(place.refuse(RefusalReason::BadFrontmatter, notes));
    };
    let at = |range: &Range<usize>| to_file.to_file(range, start);
    let mut fields = Fields::read(&root, &at, &mut notes);
    fields.unknown.retain(|key, _| !CONTRACT_KEYS.contains(&key.as_str()));
    let id = match root.get("id").map(|entry| &entry.value.value) {
        Some(Content::Text(id)) if !id.trim().is_empty() => id.trim().to_owned(),
        _ => place.folder(),
    };
    let Some(description) = fields.top.description.clone() else {
        let message = "`description` is missing";
        notes.add(&rules::DESCRIPTION_MISSING, Some("description"), start..start, message);
        return Err(place.refuse(RefusalReason::NoDescription, notes));
    };
    let name = fields.top.name.clone().unwrap_or_else(|| id.clone());
    let mut skill = assemble(SkillId::new(id), name, description, place, fields, measured);
    skill.kind = if skill.kind.inferred { WithOrigin::inferred(Kind::Tool) } else { skill.kind };
    let frontmatter = fence::split(source).yaml;
    let subject = LintInput { skill: &skill, root: &root, at: &at, frontmatter };
    lint::check_contract(&subject, &mut notes);
    lint::check_trust(&subject, None, &mut notes);
    skill.findings = notes.finish();
    Ok(skill)
}

/// Keys of the contract format that concern its execution.
pub(super) const CONTRACT_KEYS: &[&str] = &["id", "steps", "channel", "slug"];

fn note_fences(defects: &[FenceDefect], source: &str, notes: &mut Notes<'_>) {
    for defect in defects {
        match *defect {
            FenceDefect::ByteOrderMark => {
                notes.add(&rules::BYTE_ORDER_MARK, None, 0..3, "the file starts with a byte order mark")
            }
            FenceDefect::LeadingBlankLines(at) => notes.add(
                &rules::LEADING_BLANK_LINES,
                None,
                at..at + 3,
                "blank lines before the opening `---`",
            ),
            FenceDefect::NoFrontmatter(at) => notes.add(
                &rules::NO_FRONTMATTER,
                None,
                at..at,
                "the frontmatter is missing; the folder name is used as `name`",
            ),
            FenceDefect::NoOpening(at) => {
                notes.add(&rules::NO_OPENING_FENCE, None, at..at, "the frontmatter has no opening `---`")
            }
            FenceDefect::NoClosing(at) => notes.add(
                &rules::NO_CLOSING_FENCE,
                None,
                at..at,
                "the frontmatter is not closed; it is read up to here",
            ),
        };
    }
    let is_end = |at: &usize| slice(source, at + 1..).starts_with('\n');
    if let Some(at) = source.match_indices('\r').map(|(at, _)| at).find(is_end) {
        let count = source.matches("\r\n").count();
        notes.add(&rules::CRLF, None, at..at + 2, format!("{count} lines end with CR LF"));
    }
}

/// Maps ranges of the parsed YAML to ranges of the file.
struct ToFile(Option<repair::Repaired>);

impl ToFile {
    fn to_file(&self, range: &Range<usize>, base: usize) -> Range<usize> {
        let original = |at: usize| self.0.as_ref().map_or(at, |repaired| repaired.original(at)) + base;
        original(range.start)..original(range.end)
    }
}

fn read_yaml(source: &str, range: Range<usize>, notes: &mut Notes<'_>) -> Result<(Node, ToFile), ()> {
    let base = range.start;
    let yaml_text = slice(source, range);
    let (root, to_file) = match yaml::parse(yaml_text) {
        Ok(root) => (root, ToFile(None)),
        Err(error) => {
            let repaired = repair::quote_values(yaml_text, |_| true);
            let again = repaired.as_ref().and_then(|repaired| yaml::parse(&repaired.text).ok());
            let (Some(repaired), Some(root)) = (repaired, again) else {
                if let Some((key, quote)) = repair::unclosed_quote(yaml_text, error.at.start) {
                    let at = quote + base..quote + base + 1;
                    let message =
                        format!("the frontmatter is not valid YAML: the quote of `{key}` is not closed");
                    let finding = notes.add(&rules::BAD_YAML, Some(key), at, message);
                    "Close the quote at the end of the value.".clone_into(&mut finding.help);
                    return Err(());
                }
                let at = error.at.start + base..error.at.end + base;
                let before = slice(yaml_text, ..error.at.start);
                let line = before.rfind('\n').map_or(0, |newline| newline + 1);
                let is_tab = slice(yaml_text, line..).starts_with('\t');
                let what = if is_tab { "the line is indented with a tab" } else { error.message.as_str() };
                let message = format!("the frontmatter is not valid YAML: {what}");
                let finding = notes.add(&rules::BAD_YAML, None, at, message);
                if is_tab {
                    "Indent with spaces: YAML does not allow tabs there.".clone_into(&mut finding.help);
                } else if let Some(help) = error.help() {
                    help.clone_into(&mut finding.help);
                }
                return Err(());
            };
            for quoted in &repaired.quoted {
                let at = quoted.defect.start + base..quoted.defect.end + base;
                let value = slice(yaml_text, quoted.value.clone());
                let ends = quoted.colon && !value.contains(": ");
                let (rule, why) = if ends {
                    (&rules::UNQUOTED_COLON, "ends with a colon".to_owned())
                } else if quoted.colon {
                    (&rules::UNQUOTED_COLON, "contains `: `".to_owned())
                } else {
                    (&rules::UNQUOTED_VALUE, special_start(value))
                };
                let message = match quoted.unclosed {
                    Some(collection) => {
                        let name = collection.name();
                        format!("the {name} of `{}` is not closed; the value is read as a string", quoted.key)
                    }
                    None => format!("the unquoted value of `{}` {why}; it is read as a string", quoted.key),
                };
                let finding = notes.add(rule, Some(&quoted.key), at, message);
                finding.fixable = quoted.sure;
                if let Some(collection) = quoted.unclosed {
                    let (name, end) = (collection.name(), collection.end());
                    finding.help = format!("Close the {name} with `{end}`.");
                }
                if ends {
                    finding.help = String::from(
                        "Put the value in quotes: Codex, Copilot and goose drop the skill, and Claude Code shows the first \
                         line of the text instead.",
                    );
                }
                if let Some(key) = &quoted.swallowed {
                    let name = yaml_text.get(key.clone()).unwrap_or_default();
                    let message = format!("the key `{name}` is part of the value of `{}`", quoted.key);
                    let at = key.start + base..key.end + base;
                    notes.add(&rules::SWALLOWED_KEY, Some(&quoted.key), at, message);
                }
            }
            (root, ToFile(Some(repaired)))
        }
    };
    match root.value {
        Content::Map(_) => Ok((root, to_file)),
        Content::Null => Ok((Node { value: Content::Map(Vec::new()), at: root.at }, to_file)),
        _ => {
            let at = to_file.to_file(&root.at, base);
            notes.add(&rules::NOT_A_MAPPING, None, at, "the frontmatter has no `key: value` lines");
            Err(())
        }
    }
}

/// Describes the first character of a value that is not valid unquoted.
fn special_start(value: &str) -> String {
    match value.chars().next() {
        Some('`') => "starts with a backtick, which YAML reserves".to_owned(),
        Some('@') => "starts with `@`, which YAML reserves".to_owned(),
        Some(first) => format!("starts with `{first}`, which has a special meaning in YAML"),
        None => "is empty".to_owned(),
    }
}

/// The typed fields, and the mappings from which they were read.
struct Fields {
    top: Frontmatter,
    metadata: Metadata,
    classification: super::Classification,
    all_metadata: serde_json::Map<String, serde_json::Value>,
    unknown: serde_json::Map<String, serde_json::Value>,
}

impl Fields {
    fn read(root: &Node, at: &dyn Fn(&Range<usize>) -> Range<usize>, notes: &mut Notes<'_>) -> Self {
        let empty = Node { value: Content::Null, at: 0..0 };
        let metadata_node = root.get("metadata").map_or(&empty, |entry| &entry.value);
        let form_node = metadata_node.get("classification").map_or(&empty, |entry| &entry.value);
        let mut reader = Reader { notes, place: at };
        let top = Frontmatter::read(&mut reader, root);
        let metadata = Metadata::read(&mut reader, metadata_node);
        let form = ClassificationForm::read(&mut reader, form_node);
        if !matches!(metadata_node.value, Content::Map(_) | Content::Null) {
            reader.wrong_type("metadata", metadata_node, "a mapping", "; it is ignored");
        }
        let unknown = root.entries().iter().filter(|entry| !Frontmatter::KEYS.contains(&entry.key.as_str()));
        Self {
            classification: classify(&form, form_node, at, notes),
            all_metadata: metadata_node.to_json_map(),
            unknown: unknown.map(|entry| (entry.key.clone(), entry.value.to_json())).collect(),
            top,
            metadata,
        }
    }
}

fn assemble(
    id: SkillId,
    name: String,
    description: String,
    place: &SkillLocation<'_>,
    fields: Fields,
    measured: &FileMetrics,
) -> Skill {
    let Fields { top, metadata, classification, all_metadata, unknown } = fields;
    let mut tags: Vec<String> = top.tags.unwrap_or_default().0;
    tags.extend(metadata.tags.unwrap_or_default().0);
    let mut requires: Vec<String> = top.requires.unwrap_or_default().0;
    requires.extend(metadata.requires.unwrap_or_default().0);
    let dotted =
        id.as_str().split_once('.').map(|(first, _)| first.to_owned()).filter(|first| !first.is_empty());
    let kind = top.kind.or(metadata.kind);
    Skill {
        name,
        description,
        location: place.location.to_owned(),
        root_dir: place.root_dir.clone(),
        kind: kind.map_or(WithOrigin::inferred(Kind::HostKnowledge), WithOrigin::explicit),
        status: top
            .status
            .or(metadata.status)
            .map_or(WithOrigin::inferred(Status::Stable), WithOrigin::explicit),
        domain: top.domain.or(metadata.domain).map(WithOrigin::explicit).or(dotted.map(WithOrigin::inferred)),
        tags: without_repeats(tags),
        requires: without_repeats(requires),
        classification,
        properties: Properties {
            license: top.license,
            compatibility: top.compatibility,
            allowed_tools: top.allowed_tools.unwrap_or_default().0,
            metadata: all_metadata.into(),
            unknown: unknown.into(),
        },
        clients: Clients {
            when_to_use: top.when_to_use,
            disable_model_invocation: top.disable_model_invocation.unwrap_or(false),
            user_invocable: top.user_invocable,
            argument_hint: top.argument_hint,
            context: top.context,
            agent: top.agent,
            model: top.model,
            paths: top.paths.unwrap_or_default().0,
            has_hooks: top.hooks.is_some(),
        },
        digest: measured.digest,
        bytes: measured.bytes,
        modified_ms: measured.modified_ms,
        body_line: 1,
        body_lines: 0,
        has_body: false,
        findings: Vec::<Finding>::new(),
        real: None,
        id,
    }
}

fn without_repeats(words: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    words.into_iter().filter(|word| seen.insert(word.clone())).collect()
}

impl Skill {
    /// Infers the kind from neighboring files: a `scripts/` folder or a contract (`skill.yaml`) makes the skill a tool
    /// if the file does not state its kind.
    pub fn set_neighbors(&mut self, has_scripts: bool, has_contract: bool) {
        if self.kind.inferred && (has_scripts || has_contract) {
            self.kind = WithOrigin::inferred(Kind::Tool);
        }
    }
}
