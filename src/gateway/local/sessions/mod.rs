//! Sessions in this process, as adapters ask for them: kept in the store of the runs, changed under an optimistic
//! version, composed from the present catalogue.

mod agents;
mod catalogue;
mod composing;
mod tools;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::Local;
use crate::gateway::{
    AgentView, BudgetView, Code, ComposedView, Error, LevelsView, SessionClient, SessionSummary, SessionView,
    SettingsChange, ToolAnswer,
};
use crate::session::{Api, Composed, Entry, Payload, Session, SessionId, Settings, Speaker, Turn};
use crate::store::{SessionRow, Sessions, StoreError};

/// How often a change is tried again when another process was faster.
const TRIES: u32 = 16;

/// What of a session is one document; the transcript is appended line by line.
#[derive(serde::Serialize, serde::Deserialize)]
struct Document {
    settings: Settings,
    active: Vec<crate::session::Active>,
    last_call: Option<Composed>,
}

fn broken(id: &str, error: &serde_json::Error) -> Error {
    Error::new(Code::InternalError, format!("session {id} cannot be read from the store: {error}"))
}

fn decode(row: SessionRow) -> Result<Session, Error> {
    let document: Document = serde_json::from_value(row.document).map_err(|e| broken(&row.id, &e))?;
    let transcript = row
        .lines
        .into_iter()
        .map(serde_json::from_value)
        .collect::<Result<Vec<Entry>, _>>()
        .map_err(|e| broken(&row.id, &e))?;
    Ok(Session {
        id: SessionId(row.id),
        created_ms: row.created_ms,
        version: row.version,
        settings: document.settings,
        active: document.active,
        transcript,
        last_call: document.last_call,
    })
}

fn encode(session: &Session) -> Result<Value, Error> {
    let document = Document {
        settings: session.settings.clone(),
        active: session.active.clone(),
        last_call: session.last_call.clone(),
    };
    serde_json::to_value(document).map_err(|e| broken(&session.id.0, &e))
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

impl Local {
    async fn desk(&self) -> Result<Arc<dyn Sessions>, Error> {
        self.session_store().await
    }

    /// The session that a person names: id, or a beginning or end of it.
    async fn find_session(&self, wanted: &str) -> Result<Session, Error> {
        let desk = self.desk().await?;
        if let Some(row) = desk.session(wanted).await? {
            return decode(row);
        }
        let heads = desk.sessions(1_000).await?;
        let fits = |id: &str| wanted.len() >= 3 && (id.starts_with(wanted) || id.ends_with(wanted));
        let found: Vec<&str> = heads.iter().map(|head| head.id.as_str()).filter(|id| fits(id)).collect();
        match found.as_slice() {
            [one] => match desk.session(one).await? {
                Some(row) => decode(row),
                None => Err(Error::new(Code::NotFound, format!("session {one} is gone"))),
            },
            [] => Err(Error::new(
                Code::NotFound,
                format!("there is no session {wanted}; `skills session list` names them"),
            )),
            several => Err(Error::new(
                Code::InvalidRequest,
                format!("{wanted} fits several sessions: {}; say more of the id", several.join(", ")),
            )),
        }
    }

    /// Changes a session: read, change, keep if nobody else did meanwhile, else again.
    async fn change_session<T>(
        &self,
        wanted: &str,
        change: impl Fn(&mut Session) -> Result<T, Error> + Send + Sync,
    ) -> Result<(T, Session), Error> {
        let desk = self.desk().await?;
        let mut id = wanted.to_owned();
        for _ in 0..TRIES {
            let mut session = self.find_session(&id).await?;
            id.clone_from(&session.id.0);
            let known = session.transcript.len();
            let answer = change(&mut session)?;
            let lines = session.transcript[known..]
                .iter()
                .map(serde_json::to_value)
                .collect::<Result<Vec<_>, _>>()
                .map_err(|e| broken(&id, &e))?;
            let kept = desk.change_session(&id, session.version, encode(&session)?, lines).await;
            match kept {
                Ok(version) => {
                    session.version = version;
                    return Ok((answer, session));
                }
                Err(StoreError::SessionConflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::new(
            Code::SessionConflict,
            format!("session {id} changes faster than it can be read; try again"),
        ))
    }

    fn checked(&self, settings: &mut Settings, change: SettingsChange) -> Result<(), Error> {
        let SettingsChange { cap, form, instructions, locations, client, window, agent, compat } = change;
        if cap == Some(0) {
            return Err(Error::new(Code::InvalidRequest, "`cap` is 0; at least one skill has to fit"));
        }
        let named = |text: String| if text.is_empty() { None } else { Some(text) };
        if let Some(client) = client.map(named) {
            if let Some(id) = &client {
                catalogue::profile(id)?;
            }
            settings.client = client;
        }
        if let Some(agent) = agent.map(named) {
            if let Some(id) = &agent {
                self.agent(id)?;
            }
            settings.agent = agent;
        }
        settings.cap = cap.unwrap_or(settings.cap);
        settings.form = form.unwrap_or(settings.form);
        settings.instructions = instructions.unwrap_or(settings.instructions);
        settings.locations = locations.unwrap_or(settings.locations);
        settings.window = window.unwrap_or(settings.window);
        settings.compat = compat.unwrap_or(settings.compat);
        Ok(())
    }

    fn session_view(&self, session: Session) -> SessionView {
        let catalogue = self.registry.snapshot();
        let changed = |active: &&crate::session::Active| {
            catalogue
                .by_location(&active.location)
                .is_none_or(|skill| skill.digest.to_string() != active.digest)
        };
        SessionView {
            changed_since: session.active.iter().filter(changed).map(|active| active.name.clone()).collect(),
            session_id: session.id.0,
            version: session.version,
            created_ms: session.created_ms,
            settings: session.settings,
            active: session.active,
            transcript: session.transcript,
            isolation: crate::sandbox::Sandbox::detect().report().summary(),
        }
    }
}

#[async_trait]
impl SessionClient for Local {
    async fn new_session(&self, change: SettingsChange) -> Result<SessionView, Error> {
        let mut settings = Settings::default();
        self.checked(&mut settings, change)?;
        let id = SessionId(uuid::Uuid::now_v7().to_string());
        let session = Session::new(id, now_ms(), settings);
        let row = self.desk().await?.create_session(&session.id.0, encode(&session)?).await?;
        Ok(self.session_view(decode(row)?))
    }

    async fn sessions(&self, limit: usize) -> Result<Vec<SessionSummary>, Error> {
        let heads = self.desk().await?.sessions(limit).await?;
        heads
            .into_iter()
            .map(|head| {
                let document: Document =
                    serde_json::from_value(head.document).map_err(|e| broken(&head.id, &e))?;
                Ok(SessionSummary {
                    session_id: head.id,
                    created_ms: head.created_ms,
                    changed_ms: head.changed_ms,
                    active: document.active.into_iter().map(|skill| skill.name).collect(),
                    agent: document.settings.agent,
                    entries: head.lines,
                })
            })
            .collect()
    }

    async fn session(&self, session: &str) -> Result<SessionView, Error> {
        Ok(self.session_view(self.find_session(session).await?))
    }

    async fn configure_session(&self, session: &str, change: SettingsChange) -> Result<SessionView, Error> {
        let edit = |session: &mut Session| {
            let over = change.cap.filter(|cap| *cap < session.active.len() && *cap > 0);
            if let Some(cap) = over {
                return Err(Error::new(
                    Code::TooManySkills,
                    format!("{} skills are active, more than {cap}: unload some first", session.active.len()),
                ));
            }
            self.checked(&mut session.settings, change.clone())
        };
        let ((), session) = self.change_session(session, edit).await?;
        Ok(self.session_view(session))
    }

    async fn say(&self, session: &str, speaker: Speaker, text: &str) -> Result<u64, Error> {
        if text.trim().is_empty() {
            return Err(Error::new(Code::InvalidRequest, "the message is empty"));
        }
        let (number, _) = self
            .change_session(session, |session| {
                Ok(session.append(now_ms(), Turn::Message { speaker, text: text.to_owned() }))
            })
            .await?;
        Ok(number)
    }

    async fn call_tool(
        &self,
        session: &str,
        tool: &str,
        arguments: Value,
        approved: bool,
    ) -> Result<ToolAnswer, Error> {
        self.use_tool(session, tool, arguments, approved).await
    }

    async fn compose(&self, session: &str, made: bool) -> Result<ComposedView, Error> {
        let found = self.find_session(session).await?;
        let view = self.composed_view(&found).await?;
        if made {
            self.change_session(&found.id.0, |session| {
                session.last_call = Some(view.composed.clone());
                Ok(())
            })
            .await?;
        }
        Ok(view)
    }

    async fn export_session(&self, session: &str, api: Api, model: &str) -> Result<Payload, Error> {
        let session = self.find_session(session).await?;
        self.exported(&session, api, model).await
    }

    async fn level_view(&self, skill: &str) -> Result<LevelsView, Error> {
        self.levels_of(skill).await
    }

    async fn budget(&self, client: Option<&str>, window: Option<u32>) -> Result<BudgetView, Error> {
        self.budget_view(client, window).await
    }

    async fn agents(&self) -> Result<Vec<AgentView>, Error> {
        self.agent_views()
    }
}
