//! `skills scaffold`: creates a skill from options, or from prompts on the terminal.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::str::FromStr;

use super::Context;
use super::args::{ScaffoldArgs, ScriptWord};
use super::failure::{Exit, Failure};
use super::finding;
use super::output::{TerminalCaps, TextStyle, counted};
use skills_api::{Scaffold, ScaffoldResult, ScriptLanguage};
use skills_skill::{AttachTarget, EffectMode, Invocation, Role, safe_text};

pub fn run(cx: &mut Context, args: &ScaffoldArgs) -> Result<Exit, Failure> {
    if let Some(problem) = args.id.as_deref().and_then(skills_api::id_problem) {
        return Err(Failure::usage(problem));
    }
    let missing = args.id.is_none() || args.description.is_none();
    let spec = if missing && io::stdin().is_terminal() && !cx.out.json {
        prompt_scaffold(args)?
    } else {
        scaffold_from_args(args)?
    };
    let parent = match (&args.dir, cx.config()?.argument_roots.first()) {
        (Some(dir), _) => cx.cwd.join(dir),
        (None, Some(root)) => root.clone(),
        (None, None) => cx.cwd.clone(),
    };
    let mut made = skills_api::scaffold(&spec, &parent)?;
    if !skills_api::is_searched(&parent, &cx.config()?) {
        let id = &spec.id;
        let step =
            format!("no client searches this folder: move it to .claude/skills/{id} or .agents/skills/{id}");
        made.next.insert(0, step);
    }
    cx.out.show(&made, |look| render(&made, look))?;
    Ok(Exit::Success)
}

fn language(word: ScriptWord) -> ScriptLanguage {
    match word {
        ScriptWord::Python => ScriptLanguage::Python,
        ScriptWord::Node => ScriptLanguage::Node,
        ScriptWord::Shell => ScriptLanguage::Shell,
    }
}

fn scaffold_from_args(args: &ScaffoldArgs) -> Result<Scaffold, Failure> {
    let needed = |value: &Option<String>, what: &str| {
        value.clone().ok_or_else(|| {
            Failure::usage(format!("{what} is required when standard input is not a terminal"))
        })
    };
    Ok(Scaffold {
        id: needed(&args.id, "an id")?,
        description: needed(&args.description, "--description")?,
        when: args.when.clone(),
        kind: args.kind,
        role: args.role.unwrap_or(Role::Procedure),
        invocation: args.invocation,
        targets: args.targets.clone(),
        effect: args.effect.unwrap_or(EffectMode::Enrich),
        domain: args.domain.clone(),
        tags: args.tags.clone(),
        script: args.script.map(language),
        contract: args.contract,
        references: args.references,
        queries: (!args.no_golden).then(|| args.queries.clone()),
    })
}

/// Prompts for what the options leave open; Enter accepts the default in brackets.
fn prompt_scaffold(args: &ScaffoldArgs) -> Result<Scaffold, Failure> {
    let text = |value: &Option<String>, question: &str| match value {
        Some(text) => Ok(Some(text.clone())),
        None => line(question).map(|answer| Some(answer).filter(|text| !text.is_empty())),
    };
    let id = text(&args.id, "id (lowercase letters, digits, hyphens)")?.unwrap_or_default();
    let description = text(&args.description, "what does it do, in one sentence")?.unwrap_or_default();
    let when = text(&args.when, "use it when …")?;
    let role = word(args.role, "role: procedure, utility or sidecar", Role::Procedure)?;
    let usual = if role == Role::Sidecar { Invocation::Attach } else { Invocation::Direct };
    let invocation = word(args.invocation, "invocation: direct, attach or both", usual)?;
    let targets = if invocation == Invocation::Direct || !args.targets.is_empty() {
        args.targets.clone()
    } else {
        list("attach to: task, run, output, transcript, artifact (several with commas)")?
    };
    let effect = word(args.effect, "effect: read_only, enrich or control_signal", EffectMode::Enrich)?;
    let script = match args.script {
        Some(word) => Some(language(word)),
        None => loop {
            match line("script: python, node, shell or none [none]")?.as_str() {
                "" | "none" => break None,
                "python" => break Some(ScriptLanguage::Python),
                "node" => break Some(ScriptLanguage::Node),
                "shell" => break Some(ScriptLanguage::Shell),
                _ => print_line("python, node, shell or none")?,
            }
        },
    };
    let yes = |value: bool, question: &str| -> Result<bool, Failure> {
        Ok(value || matches!(line(&format!("{question} [y/N]"))?.to_ascii_lowercase().as_str(), "y" | "yes"))
    };
    let contract = script.is_some_and(|script| script != ScriptLanguage::Shell)
        && yes(args.contract, "add a contract, so that it can be executed")?;
    let references = yes(args.references, "add a reference page")?;
    let mut queries = args.queries.clone();
    while !args.no_golden && args.queries.is_empty() && role != Role::Sidecar {
        match line("example request for it (empty to finish)")? {
            query if query.is_empty() => break,
            query => queries.push(query),
        }
    }
    Ok(Scaffold {
        id,
        description,
        when,
        kind: args.kind,
        role,
        invocation: Some(invocation),
        targets,
        effect,
        domain: args.domain.clone(),
        tags: args.tags.clone(),
        script,
        contract: contract || args.contract,
        references,
        queries: (!args.no_golden).then_some(queries),
    })
}

fn print_line(text: &str) -> Result<(), Failure> {
    writeln!(io::stderr(), "  {text}")?;
    Ok(())
}

/// Prompts for a line. The end of the input ends the prompts.
fn line(question: &str) -> Result<String, Failure> {
    let mut err = io::stderr();
    write!(err, "{question}: ")?;
    err.flush()?;
    let mut answer = String::new();
    if io::stdin().read_line(&mut answer)? == 0 {
        return Err(Failure::usage("canceled; nothing was created"));
    }
    Ok(answer.trim().to_owned())
}

fn word<T: FromStr + ToString + Copy>(value: Option<T>, question: &str, usual: T) -> Result<T, Failure> {
    if let Some(value) = value {
        return Ok(value);
    }
    loop {
        let answer = line(&format!("{question} [{}]", usual.to_string()))?;
        if answer.is_empty() {
            return Ok(usual);
        }
        match answer.parse() {
            Ok(word) => return Ok(word),
            Err(_) => print_line("choose one of the values above")?,
        }
    }
}

fn list(question: &str) -> Result<Vec<AttachTarget>, Failure> {
    loop {
        let answer = line(question)?;
        let words = answer.split([',', ' ']).filter(|word| !word.is_empty()).map(str::parse);
        match words.collect::<Result<Vec<AttachTarget>, _>>() {
            Ok(targets) if !targets.is_empty() => return Ok(targets),
            _ => print_line("choose one or more of the values above")?,
        }
    }
}

fn render(made: &ScaffoldResult, look: TerminalCaps) -> String {
    let mut out = String::new();
    let folder = safe_text::line(&made.folder.display().to_string()).into_owned();
    let _ = writeln!(out, "{} {folder}", TextStyle::Good.paint("created", look.color));
    for path in &made.files {
        let _ = writeln!(out, "  {}", safe_text::line(path));
    }
    if let Some((file, count)) = &made.golden {
        let file = safe_text::line(&file.display().to_string()).into_owned();
        let _ = writeln!(out, "  {} in {file}", counted(*count, "golden query"));
    }
    if let Some(why) = &made.golden_note {
        let _ = writeln!(
            out,
            "  {} no golden queries: {}",
            TextStyle::Warn.paint("but", look.color),
            safe_text::line(why)
        );
    }
    for found in &made.findings {
        out += &finding::render(&found.finding, look);
    }
    let _ = writeln!(out, "{}", TextStyle::Strong.paint("next", look.color));
    for step in &made.next {
        let _ = writeln!(out, "  {}", safe_text::line(step));
    }
    out
}
