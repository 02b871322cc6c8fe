//! `overlay verify --kernels`: the kernels of a laid tree, proven on the host.

use std::path::Path;

use mlx_overlay_engine::cache::Cache;
use mlx_overlay_harness::report::{Load, Loads, Proof, Report, Traffic};
use mlx_overlay_harness::{HarnessError, Options, Set, Step};

use crate::cli::error::{CommandError, ErrorKind, Outcome};
use crate::cli::render;
use crate::cli::ui::{BAD, BOLD, DIM, Format, GOOD, Ui, WARN, paint};

/// Proves the kernels of a tree and prints the report.
///
/// # Errors
/// A compiler is missing, the folder is no MLX tree, or the kernels do not
/// compile at all.
pub fn run(tree: &Path, set: Set, ui: &mut Ui) -> Result<Outcome, CommandError> {
    ui.only(&[Format::Text, Format::Json])?;
    let cache = Cache::of_user()?;
    let options = Options { set, cache: cache.root().to_path_buf(), offline: ui.offline() };
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
        _ => print(&report, ui),
    }
    Ok(if report.holds() { Outcome::Done } else { Outcome::NeedsPerson })
}

fn refused(error: HarnessError) -> CommandError {
    let kind = match &error {
        HarnessError::MissingTool { .. } | HarnessError::Wheel { .. } => ErrorKind::Missing,
        HarnessError::NotATree { .. } => ErrorKind::Refused,
        _ => ErrorKind::Failed,
    };
    let hint = match &error {
        HarnessError::MissingTool { package, .. } => {
            Some(format!("apt-get install -y {}", package.replace(" and ", " ")))
        }
        HarnessError::Wheel { .. } => {
            Some("export MLX_OVERLAY_METAL_WHEEL=<a copy of the wheel>".into())
        }
        _ => None,
    };
    let error = CommandError::new(kind, error);
    hint.into_iter().fold(error, CommandError::hint)
}

fn print(report: &Report, ui: &mut Ui) {
    ui.line(paint(BOLD, &report.tree));
    ui.line(format!("  compiled by {}, run as a {}", report.compiler, report.ran_on));
    for proof in &report.proofs {
        print_proof(proof, ui);
    }
    ui.line(paint(BOLD, "mutants"));
    for mutant in &report.mutants {
        let by = mutant.caught_by.join(", ");
        ui.line(match by.as_str() {
            "" => format!("  {} {:<22} {}", paint(BAD, "SURVIVES"), mutant.name, mutant.meaning),
            by => format!("  {}   {:<22} {by}", paint(GOOD, "caught"), mutant.name),
        });
    }
    print_traffic(&report.traffic, ui);
    for left in &report.not_run {
        ui.line(format!("{} {}: {}", paint(WARN, "not run:"), left.what, left.why));
    }
    let caught = report.mutants.iter().filter(|mutant| !mutant.caught_by.is_empty()).count();
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
    let style = if report.holds() { GOOD } else { BAD };
    ui.line(paint(style, summary));
}

fn print_proof(proof: &Proof, ui: &mut Ui) {
    let Proof { name, meaning, cells, equal, values, faults, seconds } = proof;
    let (style, word) = if proof.holds() { (GOOD, "holds") } else { (BAD, "FAILS") };
    let word = paint(style, word);
    ui.line(format!("{word} {name}: {equal} of {cells} cells, {values} values, {seconds:.0} s"));
    ui.line(format!("      {}", paint(DIM, meaning)));
    for fault in faults {
        ui.line(format!("      {}", paint(BAD, fault)));
    }
}

/// The worst shape of each tile; JSON has all of them.
fn print_traffic(traffic: &[Traffic], ui: &mut Ui) {
    let read = |loads: &Loads| loads.w.distinct + loads.groups().distinct + loads.x.distinct;
    ui.line(paint(BOLD, "device memory read for one output (streamed / qmv)"));
    let mut tiles: Vec<u32> = traffic.iter().map(|one| one.tile).collect();
    tiles.sort_unstable();
    tiles.dedup();
    for tile in tiles {
        let of = traffic.iter().filter(|one| one.tile == tile);
        let Some(worst) = of.max_by_key(|one| read(&one.streamed) / one.outputs) else { continue };
        ui.line(format!("  {}", worst.cell));
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
        ui.line(part("weights", &|loads| loads.w));
        ui.line(part("scales and biases", &Loads::groups));
        ui.line(part("x", &|loads| loads.x));
    }
}
