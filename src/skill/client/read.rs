//! Reads a `SKILL.md` as a client does: the name and description that the client lists, or why it drops the skill.

use super::file::{Field, Flag, SkillFile, YamlDefect};
use super::{Escape, Fact, Handling, NameFrom, PeopleOnly, Profile, WHEN_TO_USE, WhiteSpace};
use crate::lint::rules::{
    BAD_YAML, BYTE_ORDER_MARK, DESCRIPTION_MISSING, DESCRIPTION_TOO_LONG, DUPLICATE_KEY, LEADING_BLANK_LINES,
    NAME_INVALID, NAME_MISSING, NAME_SIGNS, NO_CLOSING_FENCE, NO_FRONTMATTER, NO_OPENING_FENCE,
    NOT_A_MAPPING, NOT_UTF8, UNQUOTED_COLON, UNQUOTED_VALUE, WRONG_TYPE,
};
use skills_base::number::grouped;
use skills_base::text::collapse_whitespace;

/// Codes of the lint rules about one defect.
pub type RuleCodes = &'static [&'static str];

const NO_TEXT: RuleCodes = &[NOT_UTF8.code];
const MARKED: RuleCodes = &[BYTE_ORDER_MARK.code];
const FENCE: RuleCodes = &[NO_OPENING_FENCE.code];
const UNFENCED: RuleCodes =
    &[LEADING_BLANK_LINES.code, NO_OPENING_FENCE.code, NO_CLOSING_FENCE.code, NO_FRONTMATTER.code];
const COLON: RuleCodes = &[UNQUOTED_COLON.code];
const RESERVED: RuleCodes = &[UNQUOTED_VALUE.code];
const TWICE: RuleCodes = &[DUPLICATE_KEY.code];
const INVALID: RuleCodes = &[BAD_YAML.code, NOT_A_MAPPING.code];
const TYPE: RuleCodes = &[WRONG_TYPE.code];
const NAMELESS: RuleCodes = &[NAME_MISSING.code];
const SIGNS: RuleCodes = &[NAME_SIGNS.code, NAME_INVALID.code];
const LONG_NAME: RuleCodes = &[NAME_INVALID.code];
const UNDESCRIBED: RuleCodes = &[DESCRIPTION_MISSING.code];
const LONG_DESCRIPTION: RuleCodes = &[DESCRIPTION_TOO_LONG.code];

/// The entry of a file in a client's list, before the list is shortened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientEntry {
    /// The name under which the skill is listed.
    pub name: String,
    /// Another name that follows in parentheses in the list, unless another skill has it.
    pub other_name: Option<String>,
    pub description: String,
    /// Whether the description was truncated because of its own length.
    pub cut: bool,
    /// Whether the description is another text of the file.
    pub other_text: bool,
    /// How the client repaired a defect.
    pub repaired: Option<String>,
    /// Codes of the lint rules about the defect that the client repairs.
    pub rules: RuleCodes,
    /// Which behavior of the client is not known.
    pub unknown: Option<String>,
    /// What hides the skill from the model, so that only users can invoke it.
    pub people_only: Option<String>,
    /// The value with which the client offers the skill only on some machines.
    pub condition: Option<String>,
    /// The key of the skill in the client's settings, if it is not the name.
    pub settings_key: Option<String>,
    /// What has to happen before the skill is listed.
    pub waits: Option<String>,
    /// The key with which it is not known whether the model gets the skill, if nothing else is unknown.
    pub undocumented_key: Option<String>,
}

/// The outcome of reading a file as a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParseOutcome {
    Listed(ClientEntry),
    Dropped {
        /// The reason, for this file.
        why: String,
        /// The reason, as text that applies to every file with this defect.
        common: String,
        /// Codes of the lint rules about the reason.
        rules: RuleCodes,
    },
}

/// Reads a file as the client does. `folder` is the name of the skill's folder.
pub fn read(profile: &Profile, file: &SkillFile, folder: &str) -> ParseOutcome {
    let mut reader = Reader { profile, file, read: ClientEntry::default() };
    match reader.all(folder) {
        Ok(()) => ParseOutcome::Listed(reader.read),
        Err((why, common)) => ParseOutcome::Dropped { why, common, rules: reader.read.rules },
    }
}

/// Why a skill is dropped: for this file, and for every file with this defect.
type DropReason = (String, String);

struct Reader<'a> {
    profile: &'a Profile,
    file: &'a SkillFile,
    read: ClientEntry,
}

impl Reader<'_> {
    fn all(&mut self, folder: &str) -> Result<(), DropReason> {
        self.bytes()?;
        let with_frontmatter = self.frontmatter()?;
        let by_lines = self.line_by_line();
        let field = |key: &str, lined: &Option<Option<String>>| match lined {
            Some(Some(text)) => Field::Text(text.clone()),
            Some(None) => Field::Missing,
            None => self.file.field(key),
        };
        let (name, description) =
            by_lines.map_or((None, None), |(name, description)| (Some(name), Some(description)));
        let (name, description) = if with_frontmatter {
            (field("name", &name), field("description", &description))
        } else {
            (Field::Missing, Field::Missing)
        };
        self.name(name, folder)?;
        self.description(description, with_frontmatter)?;
        self.people_only();
        let mut conditions = self.profile.conditions.iter().filter_map(Fact::value).flatten();
        self.read.condition = conditions.find(|path| self.file.has_path(path)).cloned();
        let key = self.profile.settings_key.as_ref().and_then(Fact::value);
        self.read.settings_key = key.and_then(|path| self.file.text_at(path)).map(str::to_owned);
        if self.profile.file.paths.value() == Some(&true) && self.file.has("paths") {
            self.read.waits = Some("`paths`: listed after a matching file is used".to_owned());
        }
        Ok(())
    }

    fn dropped(&self, what: &str) -> DropReason {
        let client = &self.profile.name;
        (format!("{client} drops a skill with {what}"), what.to_owned())
    }

    fn unknown(&mut self, what: &str) {
        let client = &self.profile.name;
        self.read.unknown.get_or_insert_with(|| format!("what {client} does with {what} is not documented"));
    }

    /// Applies the client's handling of a defect of this file.
    fn defect(
        &mut self,
        fact: &Fact<Handling>,
        what: &str,
        rules: RuleCodes,
    ) -> Result<Option<Handling>, DropReason> {
        if fact.value() == Some(&Handling::Dropped) || self.read.repaired.is_none() {
            self.read.rules = rules;
        }
        match fact.value() {
            Some(Handling::Dropped) => return Err(self.dropped(what)),
            Some(Handling::Repaired(how)) => {
                self.read.repaired.get_or_insert_with(|| format!("{what}: {how}"));
            }
            Some(Handling::FromBody) => {
                self.read
                    .repaired
                    .get_or_insert_with(|| format!("{what}: uses the first line of text as the description"));
            }
            Some(Handling::FromFolder) => {
                self.read.repaired.get_or_insert_with(|| format!("{what}: uses the folder's name"));
            }
            Some(Handling::Loaded) => {}
            None => self.unknown(what),
        }
        Ok(fact.value().cloned())
    }

    fn bytes(&mut self) -> Result<(), DropReason> {
        let (profile, file) = (self.profile, self.file);
        if let Some(Some(most)) = profile.file.bytes.value()
            && file.bytes > *most
        {
            let why = format!("its SKILL.md has {} bytes; the maximum is {most}", file.bytes);
            return Err((why, format!("a SKILL.md of more than {most} bytes")));
        }
        if !file.utf8 {
            self.defect(&profile.file.not_utf8, "bytes that are not UTF-8", NO_TEXT)?;
        }
        if file.byte_order_mark {
            self.defect(&profile.file.byte_order_mark, "a byte order mark", MARKED)?;
        }
        if file.fence_blanks {
            self.defect(&profile.file.fence_blanks, "spaces after the opening ---", FENCE)?;
        }
        Ok(())
    }

    /// Checks the frontmatter, and returns whether there is any.
    fn frontmatter(&mut self) -> Result<bool, DropReason> {
        let (rules, file) = (&self.profile.file, self.file);
        if !file.fenced {
            let what =
                if file.opened { "frontmatter that is not closed" } else { "no `---` as the first line" };
            self.defect(&rules.no_frontmatter, what, UNFENCED)?;
            return Ok(false);
        }
        let mut from_body = false;
        for defect in &file.defects {
            let (fact, what, codes) = match defect {
                YamlDefect::UnquotedColon => (&rules.unquoted_colon, "an unquoted `: ` in a value", COLON),
                YamlDefect::TrailingColon => (&rules.trailing_colon, "a value that ends with a colon", COLON),
                YamlDefect::TabIndent => {
                    (&rules.tab_indent, "a tab at the start of a line of the frontmatter", INVALID)
                }
                YamlDefect::ReservedStart => {
                    let what = "an unquoted value that starts with a special character";
                    (&rules.reserved_start, what, RESERVED)
                }
                YamlDefect::DuplicateKey => (&rules.duplicate_key, "a duplicate key", TWICE),
                YamlDefect::Other => (&rules.bad_yaml, "frontmatter that is not valid YAML", INVALID),
            };
            from_body |= self.defect(fact, what, codes)? == Some(Handling::FromBody);
        }
        Ok(!from_body)
    }

    /// Reads name and description line by line, if the client does so for this file.
    fn line_by_line(&mut self) -> Option<(Option<String>, Option<String>)> {
        let text = |key| matches!(self.file.field(key), Field::Text(_));
        let sound = self.file.defects.is_empty() && text("name") && text("description");
        let lines = self.file.fenced && !sound && self.profile.file.line_reader.value() == Some(&true);
        lines.then(|| self.file.by_lines())
    }

    fn name(&mut self, field: Field, folder: &str) -> Result<(), DropReason> {
        let rules = &self.profile.file;
        let by_folder =
            matches!(self.profile.name_from.value(), Some(NameFrom::Folder | NameFrom::FolderAndName));
        if by_folder {
            let written = match field {
                Field::Text(text) | Field::Scalar(text) => text.trim().to_owned(),
                _ => String::new(),
            };
            folder.clone_into(&mut self.read.name);
            if self.profile.name_from.value() == Some(&NameFrom::FolderAndName)
                && !written.is_empty()
                && !written.contains(char::is_whitespace)
                && written != folder
            {
                self.read.other_name = Some(written);
            }
            return Ok(());
        }
        let (fact, codes, what, text) = match field {
            Field::Text(text) if !text.trim().is_empty() => (None, NAMELESS, "", text),
            Field::Text(_) => (Some(&rules.empty_name), NAMELESS, "an empty name", String::new()),
            Field::Scalar(text) => (Some(&rules.not_text), TYPE, "a number or true as name", text),
            Field::List(text) => (Some(&rules.list), TYPE, "a list as name", text),
            Field::Missing | Field::Null(_) => {
                (Some(&rules.missing_name), NAMELESS, "no name", String::new())
            }
        };
        let mut from_folder = text.is_empty() && fact.is_none_or(|fact| fact.value().is_none());
        if let Some(fact) = fact {
            from_folder |= self.defect(fact, what, codes)? == Some(Handling::FromFolder);
        }
        let text = if from_folder { folder.to_owned() } else { text };
        let mut name = match rules.white_space.value() {
            Some(WhiteSpace::OneBlank | WhiteSpace::OneLine) => collapse_whitespace(&text),
            _ => text.trim().to_owned(),
        };
        if let Some(signs) = rules.name.value() {
            name =
                name.chars().map(|sign| if signs.hyphens_for.contains(sign) { '-' } else { sign }).collect();
            let allowed = |sign: char| {
                sign.is_ascii_alphanumeric() || signs.only.as_deref().is_none_or(|only| only.contains(sign))
            };
            if !name.chars().all(allowed) || name.chars().any(|sign| signs.never.contains(sign)) {
                self.read.rules = SIGNS;
                return Err(self.dropped("a name with unsupported characters"));
            }
            let length = name.chars().count();
            if let Some(longest) = signs.longest
                && length > longest as usize
            {
                self.read.rules = LONG_NAME;
                let why = format!("its name has {length} characters; the maximum is {longest}");
                return Err((why, format!("a name of more than {longest} characters")));
            }
        }
        self.read.name = name;
        Ok(())
    }

    fn description(&mut self, field: Field, with_frontmatter: bool) -> Result<(), DropReason> {
        let rules = &self.profile.file;
        let (fact, codes, what, text) = match field {
            Field::Text(text) if !text.trim().is_empty() => (None, UNDESCRIBED, "", text),
            Field::Text(text) => (Some(&rules.empty_description), UNDESCRIBED, "an empty description", text),
            Field::Scalar(text) => (Some(&rules.not_text), TYPE, "a number or true as description", text),
            Field::List(text) => (Some(&rules.list), TYPE, "a list as description", text),
            Field::Null(text) if text.is_empty() => {
                (Some(&rules.missing_description), UNDESCRIBED, "no description", text)
            }
            Field::Null(text) => (Some(&rules.null_description), UNDESCRIBED, "null as description", text),
            Field::Missing if !with_frontmatter => (None, UNDESCRIBED, "", String::new()),
            Field::Missing => {
                (Some(&rules.missing_description), UNDESCRIBED, "no description", String::new())
            }
        };
        let mut from_body = !with_frontmatter;
        if let Some(fact) = fact {
            let handling = self.defect(fact, what, codes)?;
            from_body |= handling == Some(Handling::FromBody) || handling.is_none() && text.trim().is_empty();
        }
        self.read.other_text = from_body;
        let text = if from_body {
            let has_no_frontmatter = !self.file.fenced;
            self.file.first_line(!has_no_frontmatter).unwrap_or("Skill").to_owned()
        } else {
            text
        };
        let mut text = match rules.white_space.value() {
            Some(WhiteSpace::Preserved) => text,
            Some(WhiteSpace::OneBlank) => collapse_whitespace(&text),
            Some(WhiteSpace::OneLine) => one_line(text.trim()),
            Some(WhiteSpace::Trimmed) | None if text.trim().is_empty() => text,
            Some(WhiteSpace::Trimmed) | None => text.trim().to_owned(),
        };
        if rules.when_to_use.value() == Some(&true)
            && let Field::Text(more) | Field::Scalar(more) = self.file.field("when_to_use")
            && !more.is_empty()
        {
            // Unlike the description, it keeps the blanks at its ends.
            text = format!("{text}{WHEN_TO_USE}{}", one_line(&more));
        }
        // Where the list is markup, the text is escaped when the list is written; here the escapes are part of the
        // text.
        let escape = self.profile.budget.measured.value().map_or(Escape::None, |measured| measured.escape);
        if escape == Escape::AngleBrackets {
            text = escape.of(&text);
        }
        if let Some(Some(long)) = rules.long_description.value() {
            let (length, most) = (text.chars().count(), long.characters as usize);
            match &long.cut {
                _ if length <= most => {}
                None => {
                    self.read.rules = LONG_DESCRIPTION;
                    let (length, most) = (grouped(length as u64), grouped(most as u64));
                    let why = format!("its description has {length} characters; the maximum is {most}");
                    return Err((why, format!("a description of more than {most} characters")));
                }
                Some(mark) => {
                    self.read.cut = true;
                    let shortened: String = text.chars().take(most - mark.chars().count()).collect();
                    text = shortened + mark;
                }
            }
        }
        self.read.description = text;
        Ok(())
    }

    fn people_only(&mut self) {
        const KEY: &str = "disable-model-invocation";
        let Some(flag) = self.file.flag(KEY) else { return };
        match self.profile.people_only.value() {
            None => {
                let is_only = self.read.unknown.is_none();
                self.read.undocumented_key = is_only.then(|| KEY.to_owned());
                self.unknown(KEY);
            }
            Some(ways) => {
                let is_people_only = ways.iter().any(|way| match way {
                    PeopleOnly::Frontmatter => true,
                    PeopleOnly::FrontmatterTrue => flag == Flag::True,
                    PeopleOnly::OpenaiYaml => false,
                });
                self.read.people_only = is_people_only.then(|| KEY.to_owned());
            }
        }
    }
}

/// Replaces every run of control characters with a space.
fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_run = false;
    for sign in text.chars() {
        if !sign.is_control() {
            out.push(sign);
        } else if !in_run {
            out.push(' ');
        }
        in_run = sign.is_control();
    }
    out
}
