//! `overlay doctor`: what this machine lacks, and the command that mends it.

use mlx_overlay_engine::acquire::UPSTREAM_VARIABLE;
use mlx_overlay_engine::cache::{Cache, CacheError};
use mlx_overlay_engine::doctor::{Finding, Machine, Purpose, examine_cache};
use mlx_overlay_engine::git::{GitError, History, Limits, Mirror, Store, folder_of, reach};
use mlx_overlay_engine::pin::{Pin, Project};
use mlx_overlay_engine::registry::{Network, Registry};
use mlx_overlay_engine::secret::hidden;
use mlx_overlay_engine::stored::message;

use super::fetch::{network, standing};
use crate::cli::error::{CommandError, Outcome};
use crate::cli::progress::Teller;
use crate::cli::remedy::word;
use crate::cli::ui::{BAD, BOLD, DIM, Format, GOOD, Ui, WARN, paint};

/// Say what this machine lacks, and the command that would mend it
///
/// Looks for programs and libraries, for a cache folder that takes files, and,
/// unless --offline is given, for upstream. What the cache, or a clone of
/// upstream, has of the pin is read and checked. Exits with 1 if the series
/// cannot be fetched and laid here: outside of a project, or without a way to the
/// pin's files. What only a build or the tests would need is shown and does not
/// count.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs `overlay doctor`.
///
/// # Errors
/// The format is none that it has.
pub fn run(_: Args, ui: &mut Ui) -> Result<Outcome, CommandError> {
    ui.only(&[Format::Text, Format::Json])?;
    let pin = pin();
    let mut findings = vec![cache(&pin), objects(&pin, ui), upstream(&pin, ui)];
    let machine = Machine::this(std::env::var_os("PATH").unwrap_or_default());
    findings.extend(machine.examine());
    findings.push(pip(ui));
    findings.sort_by_key(|f| f.purpose);
    let ill = pin.is_err() || ill(&findings);
    match ui.format() {
        Format::Json => {
            ui.json("doctor", 1, &serde_json::json!({ "well": !ill, "findings": findings }));
        }
        _ => print(&findings, ill, ui),
    }
    Ok(if ill { Outcome::NeedsPerson } else { Outcome::Done })
}

/// The cache must be there, and one way to get the pin.
fn ill(findings: &[Finding]) -> bool {
    let missing = |f: &&Finding| f.found.is_none();
    let of = |purpose| findings.iter().filter(move |f| f.purpose == purpose);
    let (ways, needs): (Vec<_>, Vec<_>) =
        of(Purpose::Apply).partition(|f| [UPSTREAM, OBJECTS].contains(&f.name));
    let no_cache = needs.iter().any(missing);
    let no_upstream = ways.iter().all(missing);
    // The first crate and its bridge are enough for a series to be laid.
    let no_crates = of(Purpose::Snapshots).filter(|f| f.name == "cargo").any(|f| missing(&f));
    no_cache || (no_upstream && no_crates)
}

const UPSTREAM: &str = "upstream";
const OBJECTS: &str = "the pin's objects";

/// What mends that there is no cache.
const ANOTHER_CACHE: &str = "export MLX_OVERLAY_CACHE=<a folder of yours>";

/// What mends that there is no pin here.
const PROJECT: &str = "cd <the project, where mlx-pin.toml is>";

/// The pin of the project here; or why there is none.
fn pin() -> Result<Pin, String> {
    let here = std::env::current_dir().map_err(|e| e.to_string())?;
    Project::find(&here).map(|project| project.current).map_err(|e| message(&e))
}

/// Whether the cache has all of the pin, each object read: then nothing need be
/// fetched.
fn objects(pin: &Result<Pin, String>, ui: &Ui) -> Finding {
    let finding = |found, why, mend: &str| Finding {
        name: OBJECTS,
        purpose: Purpose::Apply,
        mend: Option::is_some(&why).then(|| mend.to_owned()),
        found,
        why,
    };
    let Ok(pin) = pin else {
        return finding(None, Some("there is no pin here to look for".into()), PROJECT);
    };
    let whole = Cache::of_user().map_err(GitError::from).and_then(|cache| {
        let (store, mirror) =
            (Store::new(&cache, &pin.upstream), Mirror::new(&cache, &pin.upstream));
        let marked = store.tree(pin.commit, pin.tree).map(|tree| tree.is_some());
        match marked.and_then(|marked| Ok(marked && store.prove(pin.commit, pin.tree)? > 0)) {
            Ok(true) => Ok(Some(store.path().display().to_string())),
            // What a drift or a rebase fetched counts.
            _ if mirror.has(pin.commit) && mirror.prove(pin.commit, pin.tree).is_ok() => {
                Ok(Some(mirror.path().display().to_string()))
            }
            Ok(false) => Ok(None),
            Err(e) => Err(e),
        }
    });
    let fetch = ui.pasted("`overlay fetch`");
    let fetch = fetch.trim_matches('`');
    match whole {
        Ok(Some(path)) => finding(Some(path), None, ""),
        Ok(None) => finding(None, Some("not all in the cache yet".to_owned()), fetch),
        Err(GitError::Cache(error)) => finding(None, Some(message(&error)), &usable_again(&error)),
        Err(error) => finding(None, Some(message(&error)), fetch),
    }
}

fn cache(pin: &Result<Pin, String>) -> Finding {
    let unusable = |error: &CacheError| Finding {
        name: "cache folder",
        purpose: Purpose::Apply,
        found: None,
        why: Some(message(error)),
        mend: Some(usable_again(error)),
    };
    let cache = match Cache::of_user() {
        Ok(cache) => cache,
        Err(error) => return unusable(&error),
    };
    let finding = examine_cache(&cache);
    let tree = |pin: &Pin| Store::new(&cache, &pin.upstream).tree(pin.commit, pin.tree);
    match pin.as_ref().map(tree) {
        // Whatever has the pin is brought there first.
        Ok(Err(GitError::Cache(ref error))) if finding.found.is_some() => unusable(error),
        _ => finding,
    }
}

/// What mends that the cache cannot be used.
fn usable_again(error: &CacheError) -> String {
    match error {
        CacheError::Owner { path, .. } => {
            format!("chown -R \"$(id -u)\" {}", word(&path.display().to_string()))
        }
        _ => ANOTHER_CACHE.to_owned(),
    }
}

fn upstream(pin: &Result<Pin, String>, ui: &mut Ui) -> Finding {
    let finding =
        |found, why, mend| Finding { name: UPSTREAM, purpose: Purpose::Apply, found, why, mend };
    let mend = Some(format!("export {UPSTREAM_VARIABLE}=<a clone of MLX>"));
    let address = match (standing(), pin) {
        (Some(named), _) => named,
        (None, Ok(pin)) => pin.upstream.clone(),
        (None, Err(why)) => {
            return finding(None, Some(why.clone()), Some(PROJECT.to_owned()));
        }
    };
    let shown = hidden(&address).into_owned();
    // Of a folder it can be told whether it has what is wanted.
    if let (Some(folder), Ok(pin)) = (folder_of(&address), pin) {
        let has = History::open(&folder).and_then(|history| {
            history.commit(pin.commit)?;
            history.prove(pin.commit, pin.tree)
        });
        return match has {
            Ok(_) => finding(Some(shown), None, None),
            Err(GitError::NoCommit { commit, .. }) => {
                finding(None, Some(format!("{shown} has no commit {commit}")), mend)
            }
            Err(ref error @ GitError::Owner { ref path, .. }) => {
                let path = word(&path.display().to_string());
                let safe = format!("git config --global --add safe.directory {path}");
                finding(None, Some(message(error)), Some(safe))
            }
            Err(e) => finding(None, Some(message(&e)), mend),
        };
    }
    if ui.offline() && folder_of(&address).is_none() {
        let why = format!("{shown} was not asked: --offline");
        return finding(None, Some(why), mend);
    }
    let bar = ui.progress(&format!("asking {shown}"));
    let reached = reach(&address, Limits::default());
    drop(bar);
    match reached {
        Ok(()) => finding(Some(shown), None, None),
        Err(e) => finding(None, Some(message(&e)), mend),
    }
}

fn pip(ui: &mut Ui) -> Finding {
    let nowhere = Cache::at("");
    let teller = Teller::new(ui);
    let pip = Registry::new(&nowhere, Network::OffLimits, &teller).pip_version();
    let mend = match std::env::consts::OS {
        "macos" => "python3 -m ensurepip",
        _ => "apt-get install -y python3-pip",
    };
    Finding {
        name: "pip",
        purpose: Purpose::Snapshots,
        mend: pip.is_err().then(|| mend.to_owned()),
        why: None,
        found: pip.ok(),
    }
}

fn print(findings: &[Finding], ill: bool, ui: &mut Ui) {
    let mut purpose = None;
    for finding in findings {
        if purpose != Some(finding.purpose) {
            ui.line(paint(BOLD, finding.purpose.as_str()));
            purpose = Some(finding.purpose);
        }
        let name = finding.name;
        match &finding.found {
            Some(found) => {
                ui.line(format!("  {} {name:<18} {}", paint(GOOD, "ok     "), paint(DIM, found)));
            }
            None => {
                let why = finding.why.as_deref().unwrap_or_default();
                ui.line(format!("  {} {name:<18} {why}", paint(WARN, "missing")));
                finding.mend.iter().for_each(|m| ui.line(format!("{:10}try: {m}", "")));
            }
        }
    }
    if ill {
        ui.line(paint(BAD, "The series cannot be fetched and laid here."));
    } else if network(ui) == Network::OffLimits {
        ui.line("Nothing was asked over the network.");
    }
}
