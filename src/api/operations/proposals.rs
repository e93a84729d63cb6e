//! Operations on proposals: propose, list, show, decide.

use super::arguments::{ProposalApprovalArguments, ProposalArguments, ProposalCommandArguments};
use super::runs::COMMAND_HINTS;
use super::skills::TOOL_PAGE;
use super::{CallContext, Hints, Operation, Route, Scope};
use crate::{
    Error, ProposalAction, ProposalActionOptions, ProposalActionResult, ProposalFilter, ProposalRequest,
};

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "proposal.create",
            Route::post("/v1/proposals"),
            Scope::Run,
            "Proposes a change to a skill's SKILL.md as a unified diff. The file changes only after approval.",
            |context: CallContext, request: ProposalRequest| async move {
                let by = context.caller.name(request.by);
                context.service.core.propose(ProposalRequest { by, ..request }).await
            },
        )
        .measures()
        .status(201)
        .tool_named("propose_skill_update"),
        Operation::new(
            "proposal.list",
            Route::get("/v1/proposals"),
            Scope::Read,
            "Lists proposals, newest first.",
            |context: CallContext, filter: ProposalFilter| async move {
                context.service.core.proposals(filter).await
            },
        )
        .shared()
        .pages(TOOL_PAGE)
        .tool(),
        Operation::new(
            "proposal.show",
            Route::get("/v1/proposals/{proposal_id}"),
            Scope::Read,
            "Returns a proposal: diff, justification, checks, effects on golden sets, digests, versions.",
            |context: CallContext, one: ProposalArguments| async move {
                context.service.core.proposal(&one.proposal_id).await
            },
        )
        .measures()
        .tool(),
        Operation::new(
            "proposal.approve",
            Route::post("/v1/proposals/{proposal_id}/approve"),
            Scope::Decide,
            "Approves a proposal, identified by its digest and that of the file, and writes the file.",
            |context: CallContext, ask: ProposalApprovalArguments| async move {
                let ProposalApprovalArguments { proposal_id, proposal_digest, base_digest, by, notes } = ask;
                act_on(&context, &proposal_id, ProposalAction::Approve { proposal_digest, base_digest }, by, notes).await
            },
        )
        .hints(Hints { destructive: true, ..COMMAND_HINTS }),
        Operation::new(
            "proposal.deny",
            Route::post("/v1/proposals/{proposal_id}/deny"),
            Scope::Decide,
            "Denies a proposal; the skill stays unchanged.",
            |context: CallContext, ask: ProposalCommandArguments| async move {
                act_on(&context, &ask.proposal_id, ProposalAction::Deny, ask.by, ask.notes).await
            },
        )
        .without_catalog()
        .hints(COMMAND_HINTS),
        Operation::new(
            "proposal.rollback",
            Route::post("/v1/proposals/{proposal_id}/rollback"),
            Scope::Decide,
            "Restores the file as it was before an applied proposal.",
            |context: CallContext, ask: ProposalCommandArguments| async move {
                act_on(&context, &ask.proposal_id, ProposalAction::RollBack, ask.by, ask.notes).await
            },
        )
        .hints(Hints { destructive: true, ..COMMAND_HINTS }),
    ]
}

async fn act_on(
    context: &CallContext,
    proposal: &str,
    action: ProposalAction,
    by: Option<String>,
    notes: Option<String>,
) -> Result<ProposalActionResult, Error> {
    let caller = &context.caller;
    let limited = caller.principal.is_some() && !caller.local && !caller.may(Scope::Admin);
    let by = ProposalActionOptions { by: caller.name(by), notes, limited };
    context.service.core.act_on_proposal(proposal, action, by).await
}
