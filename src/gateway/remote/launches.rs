//! Launches and attachments: each with a key, so that it may be sent again when its answer is lost.

use serde_json::{Map, Value, json};

use super::call::{Arguments, PATIENT, arguments, unknown};
use super::wire::Trouble;
use super::{Inner, Remote};
use crate::gateway::{
    AttachRequest, Attached, CapabilityRequest, Code, Error, ExecutionOptions, LaunchRequest, Launched,
    new_trace_id,
};
use crate::store::IdempotencyOutcome;

/// Options as they are sent, and whether the key in them is the caller's own.
struct Keyed {
    options: ExecutionOptions,
    own: bool,
}

impl Remote {
    /// Options with a key and a trace, by which a launch is known again.
    ///
    /// # Errors
    /// `invalid_request` for files, which are paths of this machine.
    fn keyed(&self, mut options: ExecutionOptions) -> Result<Keyed, Error> {
        if let Some(name) = options.files.keys().next() {
            let message = format!(
                "{name} is a file of this machine, and {} runs skills on its own: hand its content over as an input, or \
                 launch there by `skills run --file`",
                self.address()
            );
            return Err(Error::new(Code::InvalidRequest, message));
        }
        let own = options.idempotency_key.is_some();
        options.idempotency_key.get_or_insert_with(|| format!("remote-{}", uuid::Uuid::now_v7()));
        options.trace_id.get_or_insert_with(new_trace_id);
        Ok(Keyed { options, own })
    }

    fn asker(&self, given: Option<String>) -> Option<String> {
        given.or_else(|| self.user.clone())
    }

    pub(super) async fn launched(&self, request: LaunchRequest) -> Result<Launched, Error> {
        let keyed = self.keyed(request.options)?;
        let fields =
            execution("skill_id", request.skill, request.inputs, &keyed, self.asker(request.started_by));
        let launched = self.inner.keyed("skill.execute_async", fields, &keyed).await?;
        Ok(as_asked(launched, &keyed))
    }

    pub(super) async fn capability_launched(&self, request: CapabilityRequest) -> Result<Launched, Error> {
        let keyed = self.keyed(request.options)?;
        let asker = self.asker(request.started_by);
        let fields = execution("capability_id", request.capability, request.inputs, &keyed, asker);
        let launched = self.inner.keyed("capability.execute_async", fields, &keyed).await?;
        Ok(as_asked(launched, &keyed))
    }

    pub(super) async fn attached(&self, request: AttachRequest) -> Result<Attached, Error> {
        let keyed = self.keyed(request.options.clone())?;
        let fields = self.attachment(&request, &keyed.options);
        self.inner.keyed("skill.attach_async", fields, &keyed).await
    }

    /// The arguments of an attachment.
    pub(super) fn attachment(&self, request: &AttachRequest, options: &ExecutionOptions) -> Arguments {
        arguments(json!({
            "skill_id": request.skill,
            "target_type": request.target_type,
            "target_ref": request.target_ref,
            "inputs": request.inputs,
            "options": options,
            "started_by": self.asker(request.started_by.clone()),
        }))
    }
}

fn execution(
    what: &str,
    id: String,
    inputs: Map<String, Value>,
    keyed: &Keyed,
    started_by: Option<String>,
) -> Arguments {
    let mut fields = arguments(json!({
        "inputs": inputs, "options": keyed.options, "started_by": started_by,
    }));
    fields.insert(what.to_owned(), Value::String(id));
    fields
}

/// What became of a key that the caller did not give is no matter of theirs.
fn as_asked(launched: Launched, keyed: &Keyed) -> Launched {
    let idempotency = if keyed.own { launched.idempotency } else { IdempotencyOutcome::None };
    Launched { idempotency, ..launched }
}

impl Inner {
    async fn keyed<R: serde::de::DeserializeOwned>(
        &self,
        name: &'static str,
        fields: Arguments,
        keyed: &Keyed,
    ) -> Result<R, Error> {
        let patience = if keyed.options.wait { PATIENT } else { self.wire.reading() };
        match self.surely(name, fields, patience).await {
            Err(Trouble::Lost(error)) => {
                let key = keyed.options.idempotency_key.as_deref().unwrap_or_default();
                Err(unknown(
                    &error,
                    &format!("look at the runs, or repeat it with the idempotency key {key}"),
                ))
            }
            answer => answer.map_err(Trouble::error),
        }
    }
}
