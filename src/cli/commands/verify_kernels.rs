//! `overlay verify --kernels`: the kernels of a laid tree, proven on the host.

use std::collections::BTreeSet;
use std::path::Path;

use mlx_overlay_engine::cache::Cache;
use mlx_overlay_harness::metallib::{self, Network};
use mlx_overlay_harness::report::{Load, Loads, Mutant, Proof, Report, Traffic};
use mlx_overlay_harness::{HarnessError, Options, Set, Step};

use crate::cli::error::{CommandError, ErrorKind, Outcome};
use crate::cli::render;
use crate::cli::ui::{BAD, BOLD, DIM, Format, GOOD, Ui, WARN, paint};

/// Failing cells of a proof that are printed.
const FAULTS: usize = 10;

/// Proves the kernels of a tree and prints the report.
///
/// # Errors
/// Before anything is run: a tool or the wheel is missing, the folder is no MLX
/// tree, or its text is not the one that the mutants are made of.
pub fn run(tree: &Path, set: Set, ui: &mut Ui) -> Result<Outcome, CommandError> {
    ui.only(&[Format::Text, Format::Json])?;
    let cache = Cache::of_user()?;
    let network = if ui.offline() { Network::Off } else { Network::Allowed };
    let options = Options { set, cache: cache.root().to_path_buf(), network };
    let bar = ui.progress("kernels");
    let report = mlx_overlay_harness::run(tree, &options, &|Step { what, done, of }| {
        bar.set_message(what.to_string());
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    });
    drop(bar);
    let report = report.map_err(refused)?;
    match ui.format() {
        Format::Json => {
            let holds = report.holds();
            ui.json("kernels", 1, &serde_json::json!({ "holds": holds, "report": report }));
        }
        _ => text(&report).into_iter().for_each(|line| ui.line(line)),
    }
    Ok(if report.holds() { Outcome::Done } else { Outcome::NeedsPerson })
}

fn refused(error: HarnessError) -> CommandError {
    let kind = match &error {
        HarnessError::MissingTool { .. }
        | HarnessError::Wheel { .. }
        | HarnessError::Tool { .. } => ErrorKind::Missing,
        HarnessError::NotATree { .. }
        | HarnessError::Metallib { .. }
        | HarnessError::UnknownKernel(_) => ErrorKind::Refused,
        HarnessError::Mutations { .. } => ErrorKind::NeedsPerson,
        HarnessError::Io { .. } => ErrorKind::Failed,
    };
    let hints = match &error {
        HarnessError::MissingTool { package, .. } => {
            vec![format!("apt-get install -y {}", package.replace(" and ", " "))]
        }
        HarnessError::Wheel { .. } => vec![
            metallib::DOWNLOAD.to_string(),
            "export MLX_OVERLAY_METAL_WHEEL=<a copy of the wheel>".into(),
        ],
        _ => Vec::new(),
    };
    hints.into_iter().fold(CommandError::new(kind, error), CommandError::hint)
}

/// The report as text, line by line.
fn text(report: &Report) -> Vec<String> {
    let mut lines = vec![
        paint(BOLD, &report.tree),
        format!("  compiled by {}, run as a {}", report.compiler, report.ran_on),
    ];
    lines.extend(report.proofs.iter().flat_map(proof_lines));
    if !report.mutants.is_empty() {
        lines.push(paint(BOLD, "mutants"));
    }
    lines.extend(report.mutants.iter().map(mutant_line));
    if !report.traffic.is_empty() {
        lines.extend(traffic_lines(&report.traffic));
    }
    for left in &report.not_run {
        lines.push(format!("{} {}: {}", paint(WARN, "not run:"), left.what, left.why));
    }
    let caught = report.mutants.iter().filter(|mutant| mutant.caught()).count();
    let (cells, equal) = report
        .proofs
        .iter()
        .fold((0, 0), |(cells, equal), proof| (cells + proof.cells, equal + proof.equal));
    let summary = format!(
        "{equal} of {} equal, {caught} of {} caught, in {:.0} s.",
        render::count(cells, "cell"),
        render::count(report.mutants.len(), "mutant"),
        report.seconds
    );
    lines.push(paint(if report.holds() { GOOD } else { BAD }, summary));
    lines
}

fn proof_lines(proof: &Proof) -> Vec<String> {
    let Proof { name, meaning, cells, equal, values, faults, seconds } = proof;
    let (style, word) = if proof.holds() { (GOOD, "holds") } else { (BAD, "FAILS") };
    let word = paint(style, word);
    let mut lines = vec![
        format!("{word} {name}: {equal} of {cells} cells, {values} values, {seconds:.0} s"),
        format!("      {}", paint(DIM, meaning)),
    ];
    let first = faults.iter().take(FAULTS);
    lines.extend(first.map(|fault| format!("      {}", paint(BAD, fault))));
    if let Some(more @ 1..) = faults.len().checked_sub(FAULTS) {
        lines.push(format!("      and {more} more; --format json has all"));
    }
    lines
}

fn mutant_line(mutant: &Mutant) -> String {
    let Mutant { name, meaning, caught_by, fault } = mutant;
    let (style, word, what) = match fault {
        Some(why) => (BAD, "not judged", why.clone()),
        None if caught_by.is_empty() => (BAD, "SURVIVES", (*meaning).to_string()),
        None => (GOOD, "caught", caught_by.join(", ")),
    };
    format!("  {} {name:<22} {what}", paint(style, format!("{word:<10}")))
}

/// The worst shape of each tile; JSON has all of them.
fn traffic_lines(traffic: &[Traffic]) -> Vec<String> {
    let read = |loads: &Loads| loads.w.distinct + loads.groups().distinct + loads.x.distinct;
    let mut lines = vec![paint(BOLD, "device memory read for one output (streamed / qmv)")];
    let tiles: BTreeSet<u32> = traffic.iter().map(|one| one.tile).collect();
    for tile in tiles {
        let of = traffic.iter().filter(|one| one.tile == tile);
        let Some(worst) = of.max_by_key(|one| read(&one.streamed) / one.outputs) else { continue };
        lines.push(format!("  {}", worst.cell));
        let part = |what: &str, of: &dyn Fn(&Loads) -> Load| {
            let each = |value: u64| value as f64 / worst.outputs as f64;
            let (new, old) = (of(&worst.streamed), of(&worst.narrow));
            format!(
                "    {what:<17} {:>6.0} / {:<6.0} bytes in {:>6.0} / {:<6.0} loads of the source",
                each(new.distinct),
                each(old.distinct),
                each(new.loads),
                each(old.loads),
            )
        };
        lines.push(part("weights", &|loads| loads.w));
        lines.push(part("scales and biases", &Loads::groups));
        lines.push(part("x", &|loads| loads.x));
    }
    lines
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    fn report(faults: usize, mutants: Vec<Mutant>) -> Report {
        let proof = Proof {
            name: "numeric parity",
            meaning: "bits",
            cells: 20,
            equal: 20 - faults,
            values: 0,
            faults: (0..faults).map(|cell| format!("cell {cell} differs")).collect(),
            seconds: 1.0,
        };
        Report {
            tree: "tree".into(),
            set: Set::Quick,
            compiler: "clang".into(),
            ran_on: "host simulation",
            proofs: vec![proof],
            mutants,
            traffic: Vec::new(),
            not_run: Vec::new(),
            seconds: 1.0,
        }
    }

    /// The text without its colours.
    fn said(report: &Report) -> String {
        strip_str(&text(report).join("\n")).to_string()
    }

    #[test]
    fn faults_that_are_not_printed_are_counted() {
        let said = |faults| said(&report(faults, Vec::new()));
        assert!(said(12).contains("cell 9 differs\n      and 2 more; "), "{}", said(12));
        assert!(!said(12).contains("cell 10"), "{}", said(12));
        assert!(!said(10).contains(" more"), "{}", said(10));
    }

    #[test]
    fn nothing_stands_under_no_heading() {
        let said = said(&report(1, Vec::new()));
        assert!(!said.contains("mutants\n") && !said.contains("device memory"), "{said}");
    }

    #[test]
    fn a_mutant_is_caught_or_survives_or_was_not_judged() {
        let mutant = |caught_by: &[&'static str], fault: Option<&str>| Mutant {
            name: "m",
            meaning: "what it means",
            caught_by: caught_by.to_vec(),
            fault: fault.map(Into::into),
        };
        let mutants = vec![
            mutant(&["numeric", "symbolic"], None),
            mutant(&[], None),
            mutant(&[], Some("clang refuses it")),
        ];
        let said = said(&report(0, mutants));
        for wanted in [
            "numeric, symbolic",
            "SURVIVES",
            "what it means",
            "not judged",
            "clang refuses it",
            "1 of 3 mutants caught",
        ] {
            assert!(said.contains(wanted), "{wanted}: {said}");
        }
    }
}
