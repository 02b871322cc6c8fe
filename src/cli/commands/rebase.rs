//! `overlay rebase`: the series moved to another pin.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use mlx_overlay_engine::contract::Verdict;
use mlx_overlay_engine::drift::trace_line;
use mlx_overlay_engine::git::CommitInfo;
use mlx_overlay_engine::pin::Project;
use mlx_overlay_engine::rebase::session::{self, Session, State, Unresolved, work_folder};
use mlx_overlay_engine::rebase::{
    Decision, Decisions, Names, NewPin, Plan, RebaseError, Stop, contract_names, look_on, plan,
    publish,
};
use mlx_overlay_engine::series::Change;

use crate::cli::ends::{EndArgs, Known, Start, Target};
use crate::cli::error::{CommandError, ErrorKind, Outcome};
use crate::cli::remedy::word;
use crate::cli::render_rebase;
use crate::cli::ui::{Format, Ui};

/// Move the series to another pin, all or nothing
///
/// Every entry is mapped from the pin's text to the target's: kept byte for
/// byte where nothing moved, made again where something did, dropped where
/// upstream has it. Then the contracts are checked, patches/<new pin>/ is
/// written, and mlx-pin.toml moves to it. The old pin's folder is never
/// touched, and `overlay apply --pin OLD` goes on working.
///
/// Where an entry does not hold, the rebase stops: its files lie in
/// .overlay-rebase/work with diff3 markers, everything before it is kept. Edit
/// them and --continue, or --skip the entry, or --abort. Where a contract does
/// not hold, --continue with --accept 'KIND NAME=REASON' says why the series
/// still does. A rebase that was killed goes on with --continue.
///
/// Without any of these it says where a rebase under way stands.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  overlay rebase --to v0.32.2 --dry-run     what would become of each entry?
  overlay rebase --to v0.32.2               move the pin
  overlay rebase --continue                 after resolving a conflict
  overlay rebase --continue --accept 'watch qmv_impl=the twin was changed too'")]
pub struct Args {
    #[command(flatten)]
    ends: EndArgs,
    /// Say what would become of each entry, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Go on, with the files in .overlay-rebase/work as the entry's result
    #[arg(long = "continue", conflicts_with_all = ["skip", "abort", "dry_run"])]
    go_on: bool,
    /// Leave the entry that stopped the rebase out of the new series
    #[arg(long, value_name = "ENTRY", conflicts_with_all = ["abort", "dry_run"])]
    skip: Option<String>,
    /// Give the rebase up: everything is as it was before it began
    #[arg(long, conflicts_with_all = ["dry_run", "accept"])]
    abort: bool,
    /// Accept a contract that does not hold, with the reason
    #[arg(long, value_name = "KIND NAME=REASON")]
    accept: Vec<String>,
}

/// Runs `overlay rebase`.
///
/// # Errors
/// The pin, the series or the target cannot be read, or the new pin cannot be
/// written.
pub fn run(mut args: Args, ui: &mut Ui) -> Result<Outcome, CommandError> {
    ui.only(&[Format::Text, Format::Json, Format::Markdown])?;
    let project = Project::find(&std::env::current_dir()?)?;
    let under_way = session::standing(&project.root)?;
    if args.dry_run {
        return dry_run(&args, ui);
    }
    let Some(state) = under_way else {
        if args.abort && Session::clear_rest(&project.root)? {
            render_rebase::cleared(ui);
            return Ok(Outcome::Done);
        }
        if args.go_on || args.skip.is_some() || args.abort {
            return Err(CommandError::usage("no rebase is under way")
                .hint("`overlay rebase --to REV` begins one"));
        }
        if args.ends.to.is_none() {
            return Err(CommandError::usage("no rebase is under way, and --to names no target")
                .hint("`overlay rebase --to REV` begins one")
                .hint("`overlay drift --to REV` says first what it would break"));
        }
        return begin(&args, ui);
    };
    if !args.go_on && args.skip.is_none() && !args.abort {
        if args.ends.to.is_some() {
            return Err(CommandError::usage(format!("a rebase to {} is under way", state.name))
                .hint("`overlay rebase` says where it stands")
                .hint("`overlay rebase --abort` gives it up"));
        }
        if !args.accept.is_empty() {
            return Err(CommandError::usage("--accept says nothing to a rebase that only stands")
                .hint("`overlay rebase --continue --accept 'KIND NAME=REASON'` goes on with it"));
        }
        render_rebase::standing(ui, &project.root, &state);
        return Ok(Outcome::NeedsPerson);
    }
    if args.ends.to.is_some() || args.ends.source.pin.is_some() {
        return Err(CommandError::usage(format!(
            "a rebase from {} to {} is under way, and keeps both: leave --to and --pin out",
            state.from, state.name
        ))
        .hint("`overlay rebase --abort` gives it up"));
    }
    let Some(mut session) = Session::resume(&project.root)? else {
        return Err(CommandError::usage("no rebase is under way"));
    };
    // Another process may have moved the pin before it let this one go on.
    let project = Project::find(&project.root)?;
    if args.abort {
        let state = session.state.clone();
        session.abort(&project)?;
        render_rebase::aborted(ui, &state);
        return Ok(Outcome::Done);
    }
    if session.is_done(&project) {
        session.end()?;
        render_rebase::done(ui, &project.current.folder, None);
        return Ok(Outcome::Done);
    }
    args.ends.to = Some(session.state.to.to_string());
    args.ends.source.pin = Some(session.state.from.to_string());
    if args.ends.source.named().is_none() {
        args.ends.source.from = Some(session.state.upstream.clone());
    }
    let start = Start::open(&args.ends, ui)?;
    session.require_same(&start.series)?;
    let mut target = start.target(&session.state.to.to_string(), ui)?;
    // As it was called when the rebase began, wherever that name leads by now.
    target.end.name.clone_from(&session.state.name);
    let accepted = accepted(&args.accept, &start, &target, &session.state.decisions)?;
    if let Some(entry) = &args.skip {
        skip(&mut session, &start, entry)?;
    } else if let Some(entry) = session.state.stopped.clone() {
        take(&mut session, &start, &target, &entry)?;
    }
    // Last: what is accepted beside an answer that is refused is refused with it.
    session.state.decisions.accepted.extend(accepted);
    session.save()?;
    let known = start.known(&target, ui)?;
    advance(session, &start, &target, &known, ui)
}

/// `KIND NAME=REASON`, each of a contract that the series has, or that a plan made
/// after `decisions` stops at: a patch that is made again may rest on other files.
fn accepted(
    given: &[String],
    start: &Start,
    target: &Target,
    decisions: &Decisions,
) -> Result<Vec<(String, String)>, CommandError> {
    if given.is_empty() {
        return Ok(Vec::new());
    }
    let mut names = contract_names(&start.series);
    let plan = plan_with(start, target, decisions)?;
    names.extend(plan.contracts.iter().map(Verdict::key));
    let one = |text: &String| {
        let form = || CommandError::usage(format!("`{text}` is not 'KIND NAME=REASON'"));
        // A name may hold `=` itself.
        let mut splits = text.match_indices('=').map(|(at, _)| {
            let (name, reason) = (text[..at].trim(), text[at + 1..].trim());
            (name.to_owned(), reason.to_owned())
        });
        let Some((name, reason)) = splits.clone().find(|(name, _)| names.contains(name)) else {
            let (name, _) = splits.next().ok_or_else(form)?;
            let unknown = CommandError::usage(format!("the series has no contract `{name}`"));
            return Err(near(&name, &names).into_iter().fold(unknown, CommandError::hint));
        };
        if reason.is_empty() { Err(form()) } else { Ok((name, reason)) }
    };
    given.iter().map(one).collect()
}

/// The contracts of the kind that a name begins with, for a hint.
fn near(name: &str, names: &BTreeSet<String>) -> Vec<String> {
    let kind = name.split(' ').next().unwrap_or_default();
    let of_kind: Vec<&str> =
        names.iter().map(String::as_str).filter(|n| n.split(' ').next() == Some(kind)).collect();
    match of_kind[..] {
        [] => vec!["the kinds are watch, kernel, cite, note and derive".to_owned()],
        ref some => vec![format!("there are: {}", some.join(", "))],
    }
}

fn dry_run(args: &Args, ui: &mut Ui) -> Result<Outcome, CommandError> {
    let start = Start::open(&args.ends, ui)?;
    let target = start.target(args.ends.to(), ui)?;
    let known = start.known(&target, ui)?;
    let accepted = accepted(&args.accept, &start, &target, &Decisions::default())?;
    let decisions = Decisions { accepted: accepted.into_iter().collect(), ..Decisions::default() };
    let mut plan = planned(&start, &target, &known, &decisions, ui)?;
    let (pin, tree) = (start.tree.as_ref(), target.tree.as_ref());
    look_on(&mut plan, &start.series, pin, tree, &target.id, &decisions)?;
    render_rebase::planned(ui, &start.end(), &target.end, &plan, None);
    render_rebase::dry(ui);
    Ok(if plan.is_whole() { Outcome::Done } else { Outcome::NeedsPerson })
}

fn begin(args: &Args, ui: &mut Ui) -> Result<Outcome, CommandError> {
    let start = Start::open(&args.ends, ui)?;
    let current = start.project.current.commit;
    if start.pin.commit != current {
        let what = format!("a rebase moves the pin of the project, which is {current}");
        return Err(CommandError::usage(what)
            .hint("leave --pin out, or name that pin in mlx-pin.toml first")
            .hint("`overlay rebase --dry-run --pin …` plans the move of another"));
    }
    let target = start.target(args.ends.to(), ui)?;
    let (Some(commit), Some(history)) = (&target.commit, &start.history) else {
        return Err(CommandError::usage(format!(
            "`{}` is a released tree: it has no commit to pin",
            target.id
        ))
        .hint(format!(
            "`overlay rebase --dry-run --to {}` works on it, and so do drift and apply --at",
            target.id
        )));
    };
    if commit.id == start.pin.commit {
        return Err(CommandError::usage(format!("{} is the pin already", target.end.name)));
    }
    let upstream = history.path().display().to_string();
    let mut state =
        State::new(&start.series, start.pin.commit, commit.id, &target.end.name, &upstream);
    let known = start.known(&target, ui)?;
    let accepted = accepted(&args.accept, &start, &target, &state.decisions)?;
    state.decisions.accepted.extend(accepted);
    let plan = planned(&start, &target, &known, &state.decisions, ui)?;
    // What cannot be planned is not begun.
    let session = Session::begin(&start.project.root, state)?;
    settle(session, &start, &target, &plan, ui)
}

/// Plans again with all that is decided, and either stops or moves the pin.
fn advance(
    session: Session,
    start: &Start,
    target: &Target,
    known: &Known<'_>,
    ui: &mut Ui,
) -> Result<Outcome, CommandError> {
    let plan = planned(start, target, known, &session.state.decisions, ui)?;
    settle(session, start, target, &plan, ui)
}

/// Does what a plan says: stops, or moves the pin.
fn settle(
    mut session: Session,
    start: &Start,
    target: &Target,
    plan: &Plan,
    ui: &mut Ui,
) -> Result<Outcome, CommandError> {
    let (entry, parts, contracts) = match &plan.stop {
        Some(Stop::Entry { report, parts }) => (report.name.as_str(), &parts[..], Vec::new()),
        Some(Stop::Contracts { verdicts }) => {
            ("contracts", &[][..], verdicts.iter().map(Verdict::key).collect())
        }
        None => {
            let commit = target.commit.as_ref().expect("only a commit begins a session");
            let new = new_pin(start, commit)?;
            session.publishing(&start.project)?;
            let folder = publish(&start.project, &start.series, plan, &new, target.tree.as_ref())?;
            session.end()?;
            render_rebase::planned(ui, &start.end(), &target.end, plan, None);
            render_rebase::done(ui, &folder, Some(plan));
            return Ok(Outcome::Done);
        }
    };
    session.state.contracts = contracts;
    session.stop(entry, parts)?;
    let work = work_folder(&start.project.root);
    render_rebase::planned(ui, &start.end(), &target.end, plan, Some(&work));
    Ok(Outcome::NeedsPerson)
}

fn new_pin(start: &Start, commit: &CommitInfo) -> Result<NewPin, CommandError> {
    let history = start.history.as_ref().expect("only a commit of a history begins a session");
    let listing = history.tree(commit.id)?.listing().clone();
    Ok(NewPin { commit: commit.id, date: commit.date.clone(), listing })
}

/// The plan, with the commits that landed what has landed.
fn planned(
    start: &Start,
    target: &Target,
    known: &Known<'_>,
    decisions: &Decisions,
    ui: &mut Ui,
) -> Result<Plan, CommandError> {
    let mut plan = plan_with(start, target, decisions)?;
    if let Some((history, line)) = &known.way {
        let (series, pin) = (&start.series, start.tree.as_ref());
        let trace = trace_line(series, pin, &known.at_pin, history, line, &target.id)?;
        plan.name_causes(&trace);
    }
    for verdict in plan.contracts.iter().filter(|v| v.found.is_none()) {
        let name = verdict.key();
        if decisions.accepted.contains_key(&name) {
            ui.warn(format!("--accept '{name}=…' settles nothing: the contract holds"));
        }
    }
    Ok(plan)
}

fn skip(session: &mut Session, start: &Start, entry: &str) -> Result<(), CommandError> {
    if !start.series.entries.iter().any(|e| e.name == entry) {
        return Err(CommandError::usage(format!("the series has no entry `{entry}`")));
    }
    if session.state.decisions.entries.get(entry) == Some(&Decision::Skip) {
        // Said before, by a process that was killed then or at a later stop.
        return Ok(());
    }
    if session.state.stopped.as_deref() != Some(entry) {
        let what = match &session.state.stopped {
            Some(at) => format!("the rebase stopped at `{at}`, not at `{entry}`"),
            None => format!("the rebase did not stop at `{entry}`"),
        };
        return Err(CommandError::usage(what));
    }
    session.require_own()?;
    Ok(session.decide(entry, Decision::Skip)?)
}

/// Takes the files in the work folder over as the result of the entry that
/// stopped the rebase, where it can be laid.
fn take(
    session: &mut Session,
    start: &Start,
    target: &Target,
    entry: &str,
) -> Result<(), CommandError> {
    let change = start.series.entries.iter().find(|e| e.name == entry).map(|e| &e.change);
    let taken = match change {
        // Contracts: nothing of ours lies in the work folder.
        None => {
            let nothing = session.take_nothing()?;
            return nothing.map_err(|unresolved| left_open(unresolved, entry));
        }
        Some(change) => {
            let plan = plan_with(start, target, &session.state.decisions)?;
            let Some(Stop::Entry { report, parts }) = &plan.stop else { return Ok(()) };
            if report.name != entry {
                return Ok(());
            }
            match (session.rewritten(parts)?, change) {
                (Some(unresolved), _) => Err(unresolved),
                (None, Change::Derive(rule)) => session.taken_rule(entry, rule)?,
                (None, Change::Patch { .. }) => session.taken(parts)?,
            }
        }
    };
    let decision = taken.map_err(|unresolved| left_open(unresolved, entry))?;
    // What is kept must be sure to be laid: the work folder goes.
    let mut decisions = session.state.decisions.clone();
    decisions.entries.insert(entry.into(), decision.clone());
    plan_with(start, target, &decisions).map_err(|error| match error {
        RebaseError::Decision { what, .. } => open(format!("what is in the work folder: {what}"))
            .at(work_folder(&start.project.root).display(), None, None)
            .hint("change it, then `overlay rebase --continue`")
            .hint(leaves_out(entry)),
        error => error.into(),
    })?;
    Ok(session.decide(entry, decision)?)
}

/// The plan alone, without the commits that landed what has landed.
fn plan_with(start: &Start, target: &Target, decisions: &Decisions) -> Result<Plan, RebaseError> {
    let (pin, name) = (start.pin.short(), render_rebase::short(&target.end));
    let names = Names { pin: &pin, target: &name, id: &target.id };
    plan(&start.series, start.tree.as_ref(), target.tree.as_ref(), names, decisions)
}

fn left_open(unresolved: Unresolved, entry: &str) -> CommandError {
    match unresolved {
        Unresolved::Unlisted { paths } => {
            let paths: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
            open(format!(
                "not of the entry, and not taken over: {}; with the work folder it would be lost",
                paths.join(", ")
            ))
            .hint("move it away, then `overlay rebase --continue`")
            .hint("a change of another file is an entry of its own in the series")
        }
        Unresolved::SameRule { path } => {
            unsettled(&path, "the rule is as it was, and it did not fit", EDIT, entry)
        }
        Unresolved::Untouched { path, deleted: true } => {
            let what = "the file is upstream's, as it was written, which settles nothing";
            unsettled(&path, what, "remove it, as the entry does", entry)
        }
        Unresolved::Untouched { path, deleted: false } => {
            let what = "the file is as it was written, which settles nothing";
            unsettled(&path, what, EDIT, entry)
        }
        Unresolved::Unchosen { path, sides } => {
            let mut error = open("its sides cannot be merged, and which file is wanted is open")
                .at(path.display(), None, None)
                .hint("put the file that is wanted there, then `overlay rebase --continue`");
            for (side, path) in sides {
                error = error.hint(format!("{} is {}", side_of(side), path.display()));
            }
            error.hint(leaves_out(entry))
        }
        Unresolved::Clash { path, upstream, entry: own } => {
            let what = "upstream has a folder in the place of this file, or a file in that of its \
                        folder, and which is wanted is open";
            open(what)
                .at(path.display(), None, None)
                .hint(format!("put the entry's there ({}): upstream's then goes", own.display()))
                .hint(format!("or upstream's ({}): the entry's then goes", upstream.display()))
                .hint("or the entry's under a name that is free: upstream's then stays")
                .hint(leaves_out(entry))
        }
        Unresolved::NoFile { path, what } => {
            open(format!("{what} stands where the file should, and is not taken over"))
                .at(path.display(), None, None)
                .hint("put the file itself there, then `overlay rebase --continue`")
                .hint(leaves_out(entry))
        }
        Unresolved::Marker { path, line } => left(&path, line).hint(leaves_out(entry)),
        Unresolved::Missing { path } => {
            let what = "the file was not there, which settles nothing; it is written again";
            unsettled(&path, what, EDIT, entry)
        }
        Unresolved::NoFolder { path } => {
            let what = "the folder was not there, which settles nothing; its files are written \
                        again";
            unsettled(&path, what, "edit them", entry)
        }
        Unresolved::Nothing => open(format!(
            "nothing of `{entry}` is left in the work folder: its files are upstream's"
        ))
        .hint(format!("`overlay rebase --skip {}` says that this is meant", word(entry))),
    }
}

fn leaves_out(entry: &str) -> String {
    format!("`overlay rebase --skip {}` leaves it out", word(entry))
}

/// A person is not done yet.
fn open(what: impl fmt::Display + fmt::Debug + Send + Sync + 'static) -> CommandError {
    CommandError::new(ErrorKind::NeedsPerson, anyhow::Error::msg(what))
}

const EDIT: &str = "edit it";

/// A work file that is no answer yet, and what makes it one.
fn unsettled(path: &Path, what: &'static str, mend: &str, entry: &str) -> CommandError {
    open(what)
        .at(path.display(), None, None)
        .hint(format!("{mend}, then `overlay rebase --continue`"))
        .hint(leaves_out(entry))
}

/// Whose a side is that cannot be merged.
fn side_of(side: &str) -> &'static str {
    match side {
        "upstream" => "upstream's",
        "pin" => "the pin's",
        _ => "the entry's",
    }
}

fn left(path: &Path, line: usize) -> CommandError {
    open("a conflict marker is left")
        .at(path.display(), Some(line), None)
        .hint("edit the file, then `overlay rebase --continue`")
}

impl From<RebaseError> for CommandError {
    fn from(error: RebaseError) -> Self {
        match error {
            RebaseError::Drift(error) => error.into(),
            error @ (RebaseError::Decision { .. } | RebaseError::State { .. }) => {
                CommandError::new(ErrorKind::Refused, error)
            }
            error @ RebaseError::Busy { .. } => CommandError::new(ErrorKind::Failed, error)
                .reason("busy")
                .hint("wait until it is done; `overlay rebase` says then where it stands"),
            error => CommandError::new(ErrorKind::Failed, error),
        }
    }
}
