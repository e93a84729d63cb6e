//! The commands that are currently available, for footer, palette and help: one list, derived from the keymap and from
//! the commands of the focused pane.

use super::action::{Action, Context, PaneCommand};
use super::footer::Item;
use super::glyphs::Glyphs;
use super::keymap::{Binding, Keymap, key_name};
use super::overlay::{Entry, Hint, Section};
use super::pane::PaneId;

/// The context for which available commands are computed.
pub struct CommandContext<'a> {
    /// The active keymap.
    pub keymap: &'a Keymap,
    /// The glyphs for keys.
    pub glyphs: &'a Glyphs,
    /// The active pane.
    pub pane: PaneId,
    /// Its contexts, innermost first.
    pub contexts: &'a [Context],
    /// Whether a text field has the focus.
    pub in_text: bool,
    /// Whether letters that move elsewhere begin a text.
    pub letters_begin_text: bool,
    /// The commands that the pane reports as available.
    pub commands: &'a [PaneCommand],
    /// The commands of the overlay that has the keys; `None` if no overlay is shown.
    pub overlay: Option<&'a [Hint]>,
}

/// Pairs of actions that help shows in one row.
const PAIRS: [(Action, Action, &str); 6] = [
    (Action::Up, Action::Down, "move"),
    (Action::PageUp, Action::PageDown, "page up, down"),
    (Action::Top, Action::Bottom, "to the top, to the bottom"),
    (Action::NextPart, Action::PreviousPart, "next, previous panel"),
    (Action::PreviousTab, Action::NextTab, "previous, next tab"),
    (Action::SplitNarrower, Action::SplitWider, "resize panel"),
];

/// Returns the pane that a context belongs to; lists and texts are on every pane.
fn home(context: Context) -> Option<PaneId> {
    match context {
        Context::Browse | Context::BrowseDetail | Context::BrowseMap => Some(PaneId::Browse),
        Context::Discover | Context::DiscoverIntent => Some(PaneId::Discover),
        Context::Attach => Some(PaneId::Attach),
        Context::Session => Some(PaneId::Session),
        Context::Runs | Context::RunsDetail | Context::RunsBoard => Some(PaneId::Runs),
        Context::Golden => Some(PaneId::Golden),
        Context::Proposals => Some(PaneId::Proposals),
        _ => None,
    }
}

/// What the pair of [`Action::NextPart`] is called in dialogs and forms.
const NEXT_PREVIOUS_FIELD: &str = "next, previous field";

fn title(context: Context) -> &'static str {
    match context {
        Context::Global => "global",
        Context::Error => "error",
        Context::List => "lists",
        Context::Text => "texts",
        Context::Field => "text fields",
        Context::Form => "forms",
        Context::Browse => "skills",
        Context::BrowseDetail => "skill",
        Context::BrowseMap => "collisions",
        Context::Discover => "results",
        Context::DiscoverIntent => "request",
        Context::Attach => "attachment",
        Context::Session => "session",
        Context::Runs => "runs",
        Context::RunsDetail => "this run",
        Context::Golden => "golden queries",
        Context::Draft => "draft",
        Context::Proposals => "proposals",
        Context::RunsBoard => "the board",
        Context::Bulk => "bulk dialog",
        Context::Dialog | Context::Overlay => "dialog",
    }
}

impl CommandContext<'_> {
    /// Returns the footer: the pane's items, and the two that are always shown.
    pub fn footer(&self) -> (Vec<Item>, Vec<Item>) {
        let offered = |action| self.commands.iter().any(|command| command.action == action && command.footer);
        let items = self.commands.iter().filter(|command| command.footer && command.blocked.is_none());
        let items = items
            .filter_map(|command| {
                let key = self.key(command.action)?;
                // Up and Down are one item, unless one of them has another meaning here.
                let other = match command.action {
                    Action::Up => Some(Action::Down),
                    Action::Down => Some(Action::Up),
                    _ => None,
                };
                let both = other.is_some_and(|other| !offered(other) && self.key(other).is_some());
                let key = if both { self.glyphs.up_down.to_owned() } else { key };
                Some(Item { key, label: command.label.clone(), action: command.action })
            })
            .collect();
        let fixed = [(Action::Palette, "commands"), (Action::Help, "help")].into_iter();
        let fixed = fixed.filter_map(|(action, label)| {
            Some(Item { key: self.key(action)?, label: label.to_owned(), action })
        });
        (items, fixed.collect())
    }

    /// Returns the footer of an overlay.
    pub fn hints(&self, hints: &[Hint]) -> Vec<Item> {
        let item = |hint: &Hint| {
            let key = if hint.action == Action::Up {
                self.glyphs.up_down.to_owned()
            } else {
                self.key(hint.action)?
            };
            Some(Item { key, label: hint.label.to_owned(), action: hint.action })
        };
        hints.iter().filter_map(item).collect()
    }

    /// Returns the palette: recently used actions first, then keymap order; movement keys last.
    pub fn palette(&self, recent: &[Action]) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for row in self.keymap.bindings() {
            let unseen = !entries.iter().any(|entry| entry.action == row.action);
            let hidden = matches!(
                row.context,
                Context::Overlay
                    | Context::Dialog
                    | Context::Bulk
                    | Context::Draft
                    | Context::Error
                    | Context::Field
            );
            if unseen && !hidden && row.action != Action::Palette {
                let row = self.keymap.binding(row.action, self.contexts).unwrap_or(row);
                entries.push(Entry {
                    action: row.action,
                    name: row.name.clone(),
                    does: row.does.clone(),
                    place: if row.context == Context::Global { String::new() } else { place(row.context) },
                    keys: self.keys(row),
                    blocked: self.blocked(row),
                });
            }
        }
        // Commands of this pane come before global ones; movement keys are not looked up in the palette.
        let own = |entry: &Entry| match self.keymap.binding(entry.action, self.contexts) {
            Some(row) if home(row.context) == Some(self.pane) => 0,
            Some(row) if row.context != Context::Global => 1,
            _ => 2,
        };
        entries.sort_by_key(|entry| {
            let lately = recent.iter().position(|action| *action == entry.action).unwrap_or(usize::MAX);
            (lately, is_movement(entry.action), own(entry))
        });
        entries
    }

    /// Returns the help: the sections of this context, and those that apply everywhere. With an overlay, both have
    /// only the keys that work in it.
    pub fn help(&self) -> (Vec<Section>, Vec<Section>) {
        let mut contexts: Vec<Context> = self.contexts.to_vec();
        if self.in_text && self.overlay.is_none() {
            // Help opened in a text field also shows what is available after leaving it.
            let more = self.keymap.bindings().iter().map(|row| row.context);
            for context in more.filter(|context| home(*context) == Some(self.pane)) {
                if !contexts.contains(&context) {
                    contexts.push(context);
                }
            }
        }
        contexts.retain(|context| *context != Context::Global);
        let mut left: Vec<Section> = Vec::new();
        for context in &contexts {
            let section = self.section(*context, &contexts);
            if let Some(same) = left.iter_mut().find(|other| other.title == section.title) {
                same.rows.extend(section.rows);
            } else if !section.rows.is_empty() {
                left.push(section);
            }
        }
        (left, vec![self.section(Context::Global, &contexts)])
    }

    /// Returns whether an action switches between tabs although the pane has none.
    fn lacks_tabs(&self, action: Action) -> bool {
        matches!(action, Action::NextTab | Action::PreviousTab)
            && matches!(self.pane, PaneId::Discover | PaneId::Proposals)
    }

    /// Returns whether help lists an action of a context.
    fn is_listed(&self, row: &Binding) -> bool {
        let moves = is_movement(row.action);
        let Some(offered) = self.overlay else {
            // Lists and texts are shared by all panes; a pane offers a part of their commands.
            let shared = matches!(row.context, Context::List | Context::Text);
            let is_offered = !shared || moves || self.command(row.action).is_some();
            return is_offered && !self.lacks_tabs(row.action);
        };
        let scrolls = moves && matches!(row.context, Context::Text | Context::Overlay);
        let partner = |action: Action| {
            let pair = PAIRS.iter().find(|(one, other, _)| *one == action || *other == action);
            pair.map(|(one, other, _)| if *one == action { *other } else { *one })
        };
        let is_offered = |action: Action| offered.iter().any(|hint| hint.action == action);
        match row.context {
            // All other keys belong to the overlay.
            Context::Global => {
                matches!(row.action, Action::Help | Action::Suspend | Action::Redraw | Action::Quit)
            }
            _ => scrolls || is_offered(row.action) || partner(row.action).is_some_and(is_offered),
        }
    }

    /// Returns a row with the keys that trigger its action in these contexts.
    fn effective(&self, row: &Binding, contexts: &[Context]) -> Option<Binding> {
        let at = contexts.iter().position(|context| *context == row.context).unwrap_or(contexts.len());
        // Keys of a text field do not matter after leaving it.
        let is_text_help = self.in_text && self.overlay.is_none();
        let inner = if is_text_help { &[][..] } else { &contexts[..at] };
        let is_effective = |key: &crokey::KeyCombination| {
            let overridden = self.keymap.bindings().iter().any(|other| {
                inner.contains(&other.context) && other.action != row.action && other.keys.contains(key)
            });
            // In an overlay a letter never quits, and in its text fields it is text.
            let typed = self.in_text || row.action == Action::Quit;
            let is_text =
                self.overlay.is_some() && row.context == Context::Global && typed && is_letter(*key);
            let begins_text = self.letters_begin_text && is_movement(row.action) && is_letter(*key);
            !overridden && !is_text && !begins_text
        };
        let keys: Vec<_> = row.keys.iter().copied().filter(is_effective).collect();
        (!keys.is_empty()).then(|| Binding { keys, ..row.clone() })
    }

    fn section(&self, context: Context, contexts: &[Context]) -> Section {
        let inner = contexts.iter().take_while(|inner| **inner != context);
        let inner: Vec<Context> = inner.copied().collect();
        let is_repeated = |action: Action| {
            let bound = |row: &Binding| inner.contains(&row.context) && row.action == action;
            self.keymap.bindings().iter().any(|row| bound(row) && !row.keys.is_empty())
        };
        let rows: Vec<Binding> = self
            .keymap
            .bindings()
            .iter()
            .filter(|row| row.context == context && self.is_listed(row) && !is_repeated(row.action))
            .filter_map(|row| self.effective(row, contexts))
            .collect();
        let has_fields = self.overlay.is_some() || self.contexts.contains(&Context::Form);
        let mut shown = Vec::new();
        for row in &rows {
            let other = |action: Action| rows.iter().find(|row| row.action == action);
            let pair = PAIRS.iter().find(|(one, two, _)| *one == row.action || *two == row.action);
            match pair.and_then(|(one, two, name)| Some((other(*one)?, other(*two)?, *name))) {
                Some((one, two, name)) if one.action == row.action => {
                    let keys = one.keys.iter().zip(&two.keys);
                    let mut joined: Vec<String> = keys.map(|(a, b)| self.both(*a, *b)).collect();
                    if usize::from(super::widgets::text_width::cells(&joined.join(" "))) > 12 {
                        joined.truncate(1);
                    }
                    let is_field = has_fields && row.action == Action::NextPart;
                    let name = if is_field { NEXT_PREVIOUS_FIELD } else { name };
                    shown.push((joined.join(" "), name.to_owned(), self.blocked_in_help(row.action)));
                }
                Some(_) => {}
                None => {
                    let hint = self.overlay.unwrap_or_default().iter().find(|hint| hint.action == row.action);
                    let name = hint.map_or_else(|| row.name.clone(), |hint| hint.label.to_owned());
                    shown.push((self.keys(row), name, self.blocked_in_help(row.action)));
                }
            }
        }
        // A dialog may use keys of the pane behind it: they are the dialog's there.
        let in_dialog = self.overlay.is_some() && home(context).is_some();
        let context = if in_dialog { Context::Dialog } else { context };
        Section { title: title(context).to_owned(), rows: shown }
    }

    /// Formats two keys as one word: arrows adjacent, others separated by a space.
    fn both(&self, one: crokey::KeyCombination, other: crokey::KeyCombination) -> String {
        let (one, other) = (self.name_of(one), self.name_of(other));
        let arrows = one == "↑" && other == "↓";
        if arrows { format!("{one}{other}") } else { format!("{one} {other}") }
    }

    /// Returns why a command of the pane is not available; in an overlay its keys are the overlay's.
    fn blocked_in_help(&self, action: Action) -> Option<String> {
        self.command(action).filter(|_| self.overlay.is_none())?.blocked.clone()
    }

    fn blocked(&self, row: &Binding) -> Option<String> {
        if let Some(command) = self.command(row.action) {
            return command.blocked.clone();
        }
        if self.lacks_tabs(row.action) {
            return Some(format!("no tabs in {}", self.pane.name()));
        }
        if row.context == Context::Global || self.contexts.contains(&row.context) {
            return None;
        }
        match home(row.context) {
            Some(pane) if pane == self.pane => match row.context {
                Context::Browse | Context::Discover | Context::Attach | Context::Runs => None,
                inner => Some(place_in_pane(inner, pane)),
            },
            Some(pane) => Some(format!("in {} ({})", pane.name(), pane.number())),
            None => Some(format!("in {}", title(row.context))),
        }
    }

    fn command(&self, action: Action) -> Option<&PaneCommand> {
        self.commands.iter().find(|command| command.action == action)
    }

    fn key(&self, action: Action) -> Option<String> {
        self.keymap.key_for(action, self.contexts, self.in_text).map(|key| self.name_of(key))
    }

    fn keys(&self, row: &Binding) -> String {
        row.keys.iter().map(|key| self.name_of(*key)).collect::<Vec<_>>().join(" ")
    }

    fn name_of(&self, key: crokey::KeyCombination) -> String {
        key_name(key, self.glyphs)
    }
}

/// Returns whether an action moves a cursor or scrolls.
fn is_movement(action: Action) -> bool {
    PAIRS[..3].iter().any(|(one, other, _)| *one == action || *other == action)
}

fn is_letter(key: crokey::KeyCombination) -> bool {
    let is_unmodified = (key.modifiers - crossterm::event::KeyModifiers::SHIFT).is_empty();
    is_unmodified && matches!(key.codes, crokey::OneToThree::One(crossterm::event::KeyCode::Char(_)))
}

/// Returns where in its pane a context is active.
fn place_in_pane(context: Context, pane: PaneId) -> String {
    match context {
        Context::BrowseDetail => "in the details of a skill".to_owned(),
        Context::BrowseMap => "in the Collisions tab".to_owned(),
        Context::DiscoverIntent => "in the request field".to_owned(),
        Context::RunsDetail => "in the details of a run".to_owned(),
        Context::RunsBoard => "in the Board tab".to_owned(),
        _ => format!("in {}", pane.name()),
    }
}

fn place(context: Context) -> String {
    home(context).map_or_else(|| title(context).to_owned(), |pane| pane.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::glyphs::UNICODE;

    fn command(action: Action, blocked: Option<&str>) -> PaneCommand {
        PaneCommand { action, label: action.to_string(), blocked: blocked.map(str::to_owned), footer: true }
    }

    fn here<T>(in_text: bool, commands: &[PaneCommand], look: impl Fn(CommandContext<'_>) -> T) -> T {
        let keymap = Keymap::shipped().unwrap();
        let contexts: &[Context] = if in_text {
            &[Context::DiscoverIntent, Context::Field]
        } else {
            &[Context::Discover, Context::List]
        };
        look(CommandContext {
            keymap: &keymap,
            glyphs: &UNICODE,
            pane: PaneId::Discover,
            contexts,
            in_text,
            letters_begin_text: false,
            commands,
            overlay: None,
        })
    }

    #[test]
    fn footer_shows_only_available_commands_and_keys() {
        let commands = [
            command(Action::Up, None),
            command(Action::Edit, Some("read only")),
            command(Action::Open, None),
        ];
        let (items, fixed) = here(false, &commands, |here| here.footer());
        let keys: Vec<&str> = items.iter().chain(&fixed).map(|item| item.key.as_str()).collect();
        assert_eq!(keys, ["↑↓", "⏎", ":", "?"]);
        let (items, fixed) = here(true, &[command(Action::Down, None)], |here| here.footer());
        let keys: Vec<&str> = items.iter().chain(&fixed).map(|item| item.key.as_str()).collect();
        assert_eq!(keys, ["↓", "F2", "F1"]);
    }

    #[test]
    fn palette_lists_every_action_once_with_block_reasons() {
        let commands = [command(Action::Edit, Some("the shipped skills are read only"))];
        let entries = here(false, &commands, |here| here.palette(&[Action::PickTheme]));
        assert_eq!(entries[0].action, Action::PickTheme);
        let of = |action| entries.iter().find(|entry| entry.action == action).unwrap();
        assert_eq!(of(Action::Edit).blocked.as_deref(), Some("the shipped skills are read only"));
        assert_eq!(of(Action::Sort).blocked.as_deref(), Some("in Browse (1)"));
        assert_eq!(of(Action::TogglePolicy).blocked, None);
        assert_eq!(of(Action::NextTab).blocked.as_deref(), Some("no tabs in Discover"));
        assert_eq!(entries.iter().filter(|entry| entry.action == Action::Up).count(), 1);
    }

    #[test]
    fn palette_names_the_tab_of_a_command() {
        let keymap = Keymap::shipped().unwrap();
        let context = CommandContext {
            keymap: &keymap,
            glyphs: &UNICODE,
            pane: PaneId::Browse,
            contexts: &[Context::Browse, Context::List],
            in_text: false,
            letters_begin_text: false,
            commands: &[],
            overlay: None,
        };
        let entries = context.palette(&[]);
        let entry = entries.iter().find(|entry| entry.action == Action::NextCollision).unwrap();
        assert_eq!(entry.blocked.as_deref(), Some("in the Collisions tab"));
    }

    #[test]
    fn help_joins_pairs_and_mutes_what_is_blocked() {
        let commands = [command(Action::Edit, Some("read only"))];
        let (left, right) = here(false, &commands, |here| here.help());
        assert_eq!(left.iter().map(|part| part.title.as_str()).collect::<Vec<_>>(), ["results", "lists"]);
        assert!(left[1].rows.contains(&("↑↓ k j".into(), "move".into(), None)));
        assert!(left[1].rows.iter().any(|(_, name, blocked)| name == "edit" && blocked.is_some()));
        assert!(!left[1].rows.iter().any(|(_, name, _)| name == "fold"), "the pane has nothing to fold");
        assert!(right[0].rows.iter().any(|(keys, name, _)| keys == "T" && name == "choose a theme"));
        assert!(!right[0].rows.iter().any(|(keys, ..)| keys == "[ ]"), "the pane has no tabs");
    }

    #[test]
    fn letters_that_begin_a_text_are_not_movement_keys() {
        let keymap = Keymap::shipped().unwrap();
        let hints = [Hint::new(Action::Up, "scroll"), Hint::new(Action::ApproveNow, "approve")];
        for (letters_begin_text, keys) in [(false, "↑↓ k j"), (true, "↑↓")] {
            let here = CommandContext {
                keymap: &keymap,
                glyphs: &UNICODE,
                pane: PaneId::Runs,
                contexts: &[Context::Dialog],
                in_text: false,
                letters_begin_text,
                commands: &[],
                overlay: Some(&hints),
            };
            let (left, _) = here.help();
            let rows = &left[0].rows;
            assert!(rows.contains(&(keys.into(), "move".into(), None)), "{rows:?}");
            assert!(rows.contains(&("A".into(), "approve".into(), None)), "{rows:?}");
        }
    }

    #[test]
    fn help_of_a_dialog_lists_only_what_it_offers() {
        let keymap = Keymap::shipped().unwrap();
        let hint = Hint::new;
        let help = |contexts: &[Context], hints: &[Hint]| {
            let here = CommandContext {
                keymap: &keymap,
                glyphs: &UNICODE,
                pane: PaneId::Runs,
                contexts,
                in_text: false,
                letters_begin_text: false,
                commands: &[command(Action::Approve, None)],
                overlay: Some(hints),
            };
            let (left, right) = here.help();
            assert_eq!(left.iter().map(|section| section.title.as_str()).collect::<Vec<_>>(), ["dialog"]);
            let rows = left.into_iter().chain(right).flat_map(|section| section.rows);
            rows.map(|(keys, name, _)| (keys, name)).collect::<Vec<_>>()
        };
        let pairs = |rows: &[(&str, &str)]| {
            rows.iter().map(|(keys, name)| ((*keys).to_owned(), (*name).to_owned())).collect::<Vec<_>>()
        };
        let dialog =
            [hint(Action::NextPart, "next"), hint(Action::Execute, "assign"), hint(Action::Back, "cancel")];
        let global = [("? F1", "help"), ("^L", "redraw"), ("^Z", "suspend"), ("^C", "quit")];
        let own = [("⇥ ⇤", NEXT_PREVIOUS_FIELD), ("^S", "assign"), ("Esc", "cancel")];
        let rows = help(&[Context::Dialog], &dialog);
        assert_eq!(rows.len(), own.len() + global.len(), "{rows:?}");
        for row in pairs(&own[1..]).iter().chain(&pairs(&global)) {
            assert!(rows.contains(row), "{row:?}: {rows:?}");
        }
        // Left and right of a matrix bring no other command of the collision map.
        let matrix =
            [hint(Action::Left, "client"), hint(Action::Right, "client"), hint(Action::Back, "close")];
        let rows = help(&[Context::Overlay, Context::BrowseMap], &matrix);
        assert!(!rows.iter().any(|(_, name)| name == "zoom a cluster"), "{rows:?}");
        assert!(rows.iter().any(|(_, name)| name == "client"), "{rows:?}");
    }
}
