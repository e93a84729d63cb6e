//! The answer of a report in one sentence or two.

use super::{ClientChecks, WhyCheck, WhyReport};
use skills_config::Invocation;
use skills_skill::client::profiles;

impl WhyReport {
    /// Adds the options of a call to the commands in the help of each check.
    pub fn complete_commands(&mut self, called: &Invocation) {
        let of_clients = self.clients.iter_mut().flat_map(|client| &mut client.checks);
        for check in self.checks.iter_mut().chain(of_clients) {
            check.help = check.help.take().map(|help| called.completed_in(&help));
        }
    }

    /// Returns the answer in one sentence or two: whether the skill is selected, and which clients do not offer it. What
    /// clients would do with a folder that none of them searches is conditional.
    pub fn answer(&self) -> String {
        let text = AnswerText::new(self);
        let passes = !self.checks.iter().any(WhyCheck::is_failed);
        if self.intent.is_some() { text.with_request(passes) } else { text.without_request(passes) }
    }
}

/// The sentences about the clients of a report.
struct AnswerText<'r> {
    report: &'r WhyReport,
    /// The names of the clients.
    all: Vec<&'r str>,
    /// The names of those that show nothing of the skill to their models.
    hidden: Vec<&'r str>,
    /// Whether the report covers every client.
    is_about_all: bool,
    /// Whether no client searches the folder, and the checks assume that some do.
    is_assumed: bool,
}

impl<'r> AnswerText<'r> {
    fn new(report: &'r WhyReport) -> Self {
        let all = names_of(report, |_| true);
        let has_none = |is: fn(&ClientChecks) -> bool| names_of(report, is).is_empty();
        Self {
            hidden: names_of(report, ClientChecks::is_hidden),
            is_about_all: all.len() + report.other_clients.len() >= profiles().len(),
            is_assumed: has_none(|client| client.searches_folder) && !has_none(|client| client.assumed),
            all,
            report,
        }
    }

    /// Returns the answer for a request. `ranks` is whether the skill passes the checks that apply to every client.
    fn with_request(&self, ranks: bool) -> String {
        let report = self.report;
        let offers = if self.is_assumed { self.not_searched_but_assumed() } else { self.not_offered() };
        if ranks && offers.is_empty() && report.wins {
            return "The skill is offered and ranks first for this request.".to_owned();
        }
        if ranks && report.ranking.is_some() {
            return format!("The skill ranks first for this request, but {offers}.");
        }
        // Nothing was compared with the request: whether the skill is selected is open.
        if ranks && self.hidden.len() != self.all.len() {
            let offers = if offers.is_empty() {
                let offering = names_of(report, |client| !client.is_hidden() && !client.is_unknown());
                format!("{} it", self.with_verb(&offering, "offers", "offer", "would offer"))
            } else {
                offers
            };
            return format!("The skill is not ranked here, so it may or may not be selected; {offers}.");
        }
        if offers.is_empty() {
            return "The skill is not selected for this request.".to_owned();
        }
        format!("The skill is not selected for this request, and {offers}.")
    }

    /// Returns the answer without a request: the checks of the clients are all of it.
    fn without_request(&self, is_in_catalog: bool) -> String {
        let offers = self.not_offered();
        if !is_in_catalog && offers.is_empty() {
            return "The skill is not in the catalog.".to_owned();
        }
        if self.is_assumed {
            let who = match (self.is_about_all, offers.is_empty()) {
                (true, true) => "one",
                (true, false) => "all",
                (false, _) => number(&self.all, "it", "they"),
            };
            let they = if self.is_about_all { "it" } else { who };
            let then = if offers.is_empty() { format!("{they} would offer the skill") } else { offers };
            return format!("{}. If {who} did, {then}.", self.not_searched());
        }
        if !offers.is_empty() {
            return format!("{offers}.");
        }
        if self.is_about_all {
            return "Clients offer the skill.".to_owned();
        }
        let offering = names_of(self.report, |client| !client.is_unknown());
        format!("{} the skill.", self.with_verb(&offering, "offers", "offer", ""))
    }

    /// Returns what clients do not offer or show of the skill, or may not; empty if they show all of it.
    fn not_offered(&self) -> String {
        let Self { report, all, hidden, is_about_all, is_assumed } = self;
        let is_start = report.intent.is_none();
        // In a sentence about a client, "its" would be that client's.
        let (it, its) = if is_start { ("the skill", "the skill's") } else { ("it", "its") };
        let mut parts = Vec::new();
        if *is_about_all && !hidden.is_empty() && hidden.len() == all.len() {
            parts.push(if *is_assumed {
                format!("none would offer {it}")
            } else {
                format!("{} offers {it}", self.no_client())
            });
        } else if !hidden.is_empty() {
            let verb = self.with_verb(hidden, "does not offer", "do not offer", "would not offer");
            parts.push(format!("{verb} {it}"));
        }
        let other = names_of(report, |client| !client.is_hidden() && client.shows_other_text());
        if !other.is_empty() {
            let shows = self.with_verb(&other, "shows", "show", "would show");
            parts.push(format!("{shows} other text instead of {its} description"));
        }
        let is_cut = |client: &ClientChecks| !client.is_hidden() && !client.shows_other_text();
        let has_none =
            |client: &ClientChecks| client.description.as_ref().is_some_and(|text| text.shown.is_empty());
        if parts.is_empty() {
            for (is_omitted, part) in [(true, ""), (false, "all of ")] {
                let cut = names_of(report, |client| {
                    let is_failed = client.checks.iter().any(WhyCheck::is_failed);
                    is_cut(client) && is_failed && has_none(client) == is_omitted
                });
                if !cut.is_empty() {
                    let shows = self.with_verb(&cut, "does not show", "do not show", "would not show");
                    parts.push(format!("{shows} {part}{its} description"));
                }
            }
        }
        let unknown = names_of(report, |client| !client.is_hidden() && client.is_unknown());
        if !unknown.is_empty() {
            let offers = self.with_verb(&unknown, "offers", "offer", "would offer");
            let is_first = is_start && !is_assumed && parts.is_empty();
            let it_is = if is_first { "It is" } else { "it is" };
            let it = if parts.is_empty() { it } else { "it" };
            parts.push(format!("{it_is} not known whether {offers} {it}"));
        }
        parts.join("; ")
    }

    /// Returns which clients do not search the folder of the skill.
    fn not_searched(&self) -> String {
        if self.is_about_all {
            return format!("{} searches this folder", self.no_client());
        }
        let verb = number(&self.all, "does not search", "do not search");
        format!("{} {verb} this folder", join_names(&self.all))
    }

    /// Returns which clients do not search the folder of the skill, and that the checks assume the opposite.
    fn not_searched_but_assumed(&self) -> String {
        let they = if self.is_about_all { "one does" } else { number(&self.all, "it does", "they do") };
        format!("{}; the checks assume that {they}", self.not_searched())
    }

    /// Returns the subject of a sentence about no client. Without a request, it is the first of the answer.
    fn no_client(&self) -> &'static str {
        if self.report.intent.is_none() { "No client" } else { "no client" }
    }

    fn with_verb(&self, names: &[&str], one: &str, more: &str, conditional: &str) -> String {
        let verb = if self.is_assumed { conditional } else { number(names, one, more) };
        format!("{} {verb}", join_names(names))
    }
}

/// Returns the names of the clients of a report to which a condition applies.
fn names_of(report: &WhyReport, is: impl Fn(&ClientChecks) -> bool) -> Vec<&str> {
    report.clients.iter().filter(|client| is(client)).map(|client| client.name.as_str()).collect()
}

/// Returns the form of a verb for these subjects.
fn number<'w>(names: &[&str], one: &'w str, more: &'w str) -> &'w str {
    if names.len() == 1 { one } else { more }
}

/// Joins names: `a`, `a and b`, `a, b and c`.
fn join_names(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
