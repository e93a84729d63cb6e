//! Messages of the Session pane, and the requests that they cause.

use std::sync::Arc;

use serde_json::json;

use super::{SessionPane, Tab};
use crate::overlay::{DialogSpec, NAME_OF_EXPORT, PromptKind};
use crate::pane::{Effect, Message, PickerKind, Target};
use crate::run_requests::RunResponse;
use crate::session_export::{Format, short_id};
use crate::session_requests::{SessionRequest, SessionResponse};
use crate::widgets::relative_time::moment;
use crate::widgets::text_width::shown;
use skills_api::{Code, Event, SettingsChange};
use skills_session::Api;

impl SessionPane {
    pub(super) fn news(&mut self, message: &Message) -> Vec<Effect> {
        match message {
            Message::Session(response) => self.on_response(response),
            Message::Catalogue(catalogue) => {
                self.catalogue = Arc::clone(catalogue);
                self.again()
            }
            Message::Event(Event::Catalogue(change)) => {
                self.catalogue = Arc::clone(&change.catalogue);
                self.again()
            }
            Message::Event(Event::Replaced) => self.reset(),
            Message::Run(RunResponse::Following) => self.reached(),
            Message::Rendered(key, lines) => {
                self.rendered.insert(*key, Arc::clone(lines));
                Vec::new()
            }
            Message::Visit(Target::Skill(skill)) => {
                // No session is open yet when the first skill is loaded from another pane.
                let load = json!({"names": [skill.as_str()], "mode": "add"});
                if let Some(_) = self.id() {
                    self.call("skills.load", load)
                } else {
                    self.requested = true;
                    self.waiting_load = Some(skill.to_string());
                    vec![Effect::Session(SessionRequest::Latest)]
                }
            }
            Message::Detail(_, Ok(detail)) => self.choose_file(detail).into_iter().collect(),
            Message::Detail(_, Err(error)) => {
                self.choosing = None;
                vec![Effect::ErrorNotice("the skill's files".to_owned(), error.message.clone())]
            }
            Message::Picked(kind, value) => self.picked(*kind, value),
            Message::SavedDraft(sheet, typed) => {
                self.typed.keep(sheet, typed);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Resets the pane after the core changed to another store, in which this session does not exist.
    fn reset(&mut self) -> Vec<Effect> {
        if self.session.take().is_none() {
            return Vec::new();
        }
        (self.composed, self.levels, self.payload, self.trouble) = (None, None, None, None);
        self.requested = true;
        vec![Effect::Session(SessionRequest::Latest)]
    }

    /// Handles a restored connection: loads what failed in the meantime.
    fn reached(&mut self) -> Vec<Effect> {
        if self.unreached {
            return self.request_again();
        }
        if self.session.is_some() && self.composed.is_none() { self.refresh() } else { Vec::new() }
    }

    /// Requests the session that could not be loaded again.
    pub(super) fn request_again(&mut self) -> Vec<Effect> {
        (self.unreached, self.requested) = (false, true);
        vec![Effect::Session(SessionRequest::Latest)]
    }

    /// Reloads everything after a change of the catalog, which may change the next call.
    fn again(&mut self) -> Vec<Effect> {
        let mut effects = self.check_session(true);
        effects.extend(self.compose());
        match self.tab {
            Tab::PerLevel => effects.extend(self.count_levels()),
            Tab::Payload => effects.extend(self.request_payload()),
            Tab::Composed | Tab::Transcript => {}
        }
        // Files may have changed too: they are counted again when they are shown.
        if self.tab != Tab::PerLevel {
            self.levels = None;
        }
        effects
    }

    fn on_response(&mut self, response: &SessionResponse) -> Vec<Effect> {
        if matches!(
            response,
            SessionResponse::Session(_) | SessionResponse::Tool(..) | SessionResponse::Review(..)
        ) {
            self.others.answered();
        }
        match response {
            SessionResponse::Looked(id, newest, changed) => {
                self.looked(id, newest.as_ref(), changed.as_ref())
            }
            SessionResponse::Session(Ok(session)) => {
                self.show(Arc::clone(session));
                if let Some(skill) = self.waiting_load.take() {
                    return self.call("skills.load", json!({"names": [skill], "mode": "add"}));
                }
                self.refresh()
            }
            SessionResponse::Session(Err(error)) => {
                if self.session.is_none() {
                    self.trouble = Some(error.message.clone());
                    self.unreached = matches!(error.code, Code::UpstreamFailure | Code::UpstreamTimeout);
                    if self.unreached {
                        // The pane shows the error in place of the session, as long as it applies.
                        return Vec::new();
                    }
                }
                vec![Effect::ErrorNotice("the session".to_owned(), error.message.clone())]
            }
            SessionResponse::Tool(tool, answer, after) => {
                if let Some(after) = after {
                    self.show(Arc::clone(after));
                }
                let mut effects = self.refresh();
                match answer {
                    Ok(answer) => effects.extend(self.answered(tool, &answer.result)),
                    Err(error) => effects.push(Effect::ErrorNotice(tool.clone(), error.message.clone())),
                }
                effects
            }
            SessionResponse::Review(call, sheet, after) => {
                if let Some(after) = after {
                    self.show(Arc::clone(after));
                }
                let mut effects = self.refresh();
                if self.id() == Some(call.session.as_str()) {
                    let (call, sheet) = (call.clone(), sheet.clone());
                    effects.push(Effect::OpenDialog(Box::new(DialogSpec::Script { call, sheet })));
                }
                effects
            }
            SessionResponse::Composed(id, Ok(composed)) if self.id() == Some(id) => {
                self.composed = Some(Arc::clone(composed));
                self.composed_once()
            }
            SessionResponse::Composed(_, Ok(_)) => self.composed_once(),
            SessionResponse::Composed(_, Err(error)) => {
                (self.composing, self.overlapped) = (0, false);
                vec![Effect::ErrorNotice("the next call".to_owned(), error.message.clone())]
            }
            SessionResponse::Exported(api, Ok(payload)) => {
                let text = serde_json::to_string_pretty(&payload.body).unwrap_or_default();
                self.payload = Some((*api, text.into()));
                self.objections.clone_from(&payload.notes);
                Vec::new()
            }
            SessionResponse::Exports(id, Ok(exports), desktop) if self.id() == Some(id) => {
                let asking = PromptKind::Export {
                    session: id.clone(),
                    exports: Arc::clone(exports),
                    first: Format::of(self.api.unwrap_or(Api::Anthropic)),
                    desktop: *desktop,
                };
                let typed = self.typed.of(NAME_OF_EXPORT);
                vec![Effect::OpenDialog(Box::new(DialogSpec::Prompt { asking, typed }))]
            }
            SessionResponse::Exports(_, Ok(_), _) => Vec::new(),
            SessionResponse::Written(Ok(path)) => {
                vec![Effect::Toast(format!("wrote {}", shown(&path.display().to_string())))]
            }
            SessionResponse::Written(Err(why)) => {
                vec![Effect::ErrorNotice("the export".to_owned(), why.clone())]
            }
            SessionResponse::Levels(_, Ok(levels)) => {
                self.levels = Some(Arc::clone(levels));
                self.choose_loaded_file(levels).into_iter().collect()
            }
            SessionResponse::Levels(skill, Err(error)) => {
                (self.choosing, self.no_levels) = (None, Some((skill.clone(), error.message.clone())));
                vec![Effect::ErrorNotice("the session".to_owned(), error.message.clone())]
            }
            // Browse requested it.
            SessionResponse::Budget(..) => Vec::new(),
            SessionResponse::Listed(Ok(sessions)) => {
                let choices = sessions
                    .iter()
                    .map(|session| {
                        let active = if session.active.is_empty() {
                            "no skills loaded".to_owned()
                        } else {
                            session.active.join(", ")
                        };
                        let label = format!("{}  {active}", short_id(&session.session_id));
                        let agent = session.agent.as_deref().map(|id| format!("{}, ", shown(id)));
                        let note = format!(
                            "{}{}, created {}, changed {}",
                            agent.unwrap_or_default(),
                            if session.entries == 1 {
                                "1 entry".to_owned()
                            } else {
                                format!("{} entries", session.entries)
                            },
                            moment(session.created_ms),
                            moment(session.changed_ms)
                        );
                        (session.session_id.clone(), label, note)
                    })
                    .collect();
                let open = sessions.iter().position(|session| Some(session.session_id.as_str()) == self.id());
                vec![super::keys::pick(PickerKind::Session, "Open a session", choices, open)]
            }
            SessionResponse::Agents(Ok(agents)) => {
                let all = (String::new(), "orchestrator".to_owned(), "sees every skill".to_owned());
                let named = agents.iter().map(|view| {
                    let skills = view.agent.uses_skills.join(", ");
                    (view.agent.id.clone(), view.agent.id.clone(), skills)
                });
                let choices: Vec<_> = std::iter::once(all).chain(named).collect();
                let speaks = self.session.as_ref().and_then(|session| session.settings.agent.clone());
                let speaks = speaks.unwrap_or_default();
                let current = choices.iter().position(|(id, ..)| *id == speaks);
                vec![super::keys::pick(PickerKind::Agent, "Agent", choices, current)]
            }
            SessionResponse::Exported(_, Err(error))
            | SessionResponse::Exports(_, Err(error), _)
            | SessionResponse::Listed(Err(error))
            | SessionResponse::Agents(Err(error)) => {
                vec![Effect::ErrorNotice("the session".to_owned(), error.message.clone())]
            }
        }
    }

    /// Requests what depends on the session's state.
    pub(super) fn refresh(&mut self) -> Vec<Effect> {
        let mut effects = self.compose();
        match self.tab {
            Tab::PerLevel => effects.extend(self.request_levels()),
            Tab::Payload => effects.extend(self.request_payload()),
            Tab::Composed | Tab::Transcript => {}
        }
        effects
    }

    /// Returns notices about a tool's result that the pane does not show anyway.
    fn answered(
        &mut self,
        tool: &str,
        result: &Result<serde_json::Value, skills_session::ToolError>,
    ) -> Vec<Effect> {
        match result {
            Err(error) => vec![Effect::ErrorNotice(tool.to_owned(), error.message.clone())],
            Ok(value) => {
                let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
                let note = match tool {
                    "skills.read" => format!("read {}: {} B", text("path"), value["size"]),
                    "skills.run_script" => format!("{} exited with {}", text("path"), value["exit_code"]),
                    "skills.load" => "takes effect with the next call".to_owned(),
                    _ => "unloaded".to_owned(),
                };
                vec![Effect::Toast(note)]
            }
        }
    }

    fn picked(&mut self, kind: PickerKind, value: &str) -> Vec<Effect> {
        let named = || Some(value.to_owned());
        match kind {
            PickerKind::SkillToLoad => self.call("skills.load", json!({"names": [value], "mode": "add"})),
            PickerKind::FileToRead => {
                let skill = self.selected().map(|skill| skill.name.clone());
                self.call("skills.read", json!({"path": value, "skill": skill}))
            }
            PickerKind::ScriptToRun => self.script_sheet(value).into_iter().collect(),
            PickerKind::Session => vec![Effect::Session(SessionRequest::Open(value.to_owned()))],
            PickerKind::NewSession => vec![self.begin(value == super::keys::SAME_SETTINGS)],
            PickerKind::Agent => {
                self.configure(SettingsChange { agent: named(), ..SettingsChange::default() })
            }
            PickerKind::Client => {
                self.configure(SettingsChange { client: named(), ..SettingsChange::default() })
            }
            PickerKind::CopyAs => self.copy_as(value),
            _ => Vec::new(),
        }
    }

    fn configure(&self, change: SettingsChange) -> Vec<Effect> {
        let Some(id) = self.id() else { return Vec::new() };
        vec![Effect::Session(SessionRequest::Configure(id.to_owned(), change))]
    }
}
