//! How long a quantized product of M vectors takes under each policy.
//!
//! `cargo bench --features runtime --bench qmv_policy -- [--shape N×K] [--max-m M]`
//!
//! Prints times, ratios and the fraction of the gain that `streamed` keeps. What
//! ran is looked at before anything is timed: a policy that ran the kernels of
//! another is no arm of a comparison, and is named in place of a number. Where
//! nothing reads the policy, as on any CPU, nothing is multiplied at all.

use std::process::ExitCode;
use std::time::Instant;

use mlx_overlay::exactness::{
    Arm, NoFraction, Ran, Shape, batch_limit, comparable, random, recovered_fraction,
};
use mlx_overlay::runtime::*;

/// Outputs × inputs of the projections that are served.
const SHAPES: [(usize, usize); 5] =
    [(4096, 4096), (5120, 5120), (14336, 5120), (5120, 14336), (27648, 5120)];
/// Where the limit of the device is not known.
const MAX_M: usize = 6;
/// Products timed together, and how often; the fastest counts.
const PRODUCTS: usize = 4;
const ROUNDS: usize = 5;

struct Options {
    shapes: Vec<(usize, usize)>,
    max_m: Option<usize>,
}

fn options() -> std::result::Result<Options, String> {
    let mut options = Options { shapes: vec![], max_m: None };
    // `cargo bench` adds `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|a| a != "--bench");
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or(format!("{argument} wants a value"))?;
        let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no number"));
        match argument.as_str() {
            "--max-m" => options.max_m = Some(number(&value)?),
            "--shape" => {
                let (n, k) = value.split_once(['x', '×']).ok_or("a shape is N×K")?;
                options.shapes.push((number(n)?, number(k)?));
            }
            _ => return Err(format!("unknown argument {argument}: --shape N×K, --max-m M")),
        }
    }
    if options.shapes.is_empty() {
        options.shapes = SHAPES.to_vec();
    }
    Ok(options)
}

fn main() -> ExitCode {
    let ran = options().and_then(|o| run(&o).map_err(|e| e.to_string()));
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let info = info()?;
    println!("MLX {}, library {}, on {}", info.mlx_version, info.library_key, info.device);
    println!("{}", effect()?);
    if effect()? != Effect::Dispatches {
        for (n, k) in &options.shapes {
            println!("{n} × {k}: {}", NoFraction::NoEffect);
        }
        return Ok(());
    }
    let stream = Stream::new(Device::best()?)?;
    let how = Quantization { mode: Mode::Affine, group_size: 64, bits: 4 };
    let mut verdicts = Verdicts::on(machine()?);
    for &(n, k) in &options.shapes {
        let dense = array_f16(&random(n * k, 1), &[n, k])?;
        let weight = Quantized::new(&dense, how, &stream)?;
        weight.eval()?;
        let limit = batch_limit(&info.architecture, k, n);
        let last = options.max_m.or(limit.map(|l| l - 1)).unwrap_or(MAX_M);
        let known = limit.map_or("no limit known for this device".into(), |l| format!("limit {l}"));
        println!("\n{n} × {k}, {how}, float16, M = 2 to {last} ({known})");
        for m in 2..=last {
            row(&weight, m, &stream, &mut verdicts)?;
        }
    }
    Ok(())
}

/// Sees what each policy runs for one M, times those that differ, and prints
/// what may be said.
fn row(weight: &Quantized, m: usize, stream: &Stream, verdicts: &mut Verdicts) -> Result<()> {
    let (n, k) = (weight.shape()[0], weight.shape()[1]);
    let shape = Shape { m, n, k, stack: 1 };
    let cells = Cell::of(ElementType::Float16, weight.quantization(), shape);
    let settings = [
        (Policy::Narrow, Setting::Narrow),
        (Policy::Wide, Setting::Wide),
        (Policy::Streamed, Setting::Streamed(cells.into_iter().collect())),
    ];
    let x = array_f16(&random(m * k, 2), &[1, m, k])?;
    x.eval()?;
    let mut arms: Vec<Arm> = Vec::new();
    let mut said = Vec::new();
    for (policy, setting) in settings {
        let set = set_policy(Scope::Stream(stream.id()), &setting, verdicts)?;
        for (cell, verdict) in set.verdicts.iter().filter(|(_, v)| !v.holds()) {
            println!("  not certified, runs narrow: {cell}: {verdict}");
        }
        let before = dispatches()?;
        weight.matmul(&x, Orientation::Transposed, stream)?.eval()?;
        let dispatched = dispatches()?.zip(before).map(|(now, before)| now.since(&before));
        let ran = Ran { policy, dispatched };
        if let Some(why) = arms.iter().find_map(|arm| comparable(&arm.ran, &ran).err()) {
            said.push(why.to_string());
            continue;
        }
        let seconds = seconds(weight, &x, stream)?;
        let ratio = arms.first().map_or(1.0, |narrow| seconds / narrow.seconds);
        said.push(format!("{policy} {:9.1} µs ({ratio:.2})", seconds * 1e6));
        arms.push(Arm { ran, seconds });
    }
    if let [narrow, wide, streamed] = &arms[..] {
        said.push(match recovered_fraction(narrow, wide, streamed) {
            Ok(fraction) => format!("recovered {fraction:.2}"),
            Err(why) => why.to_string(),
        });
    }
    println!("  M = {m:2}: {}", said.join(", "));
    Ok(())
}

/// The time of one product: the fastest of several rounds.
fn seconds(weight: &Quantized, x: &Array, stream: &Stream) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..PRODUCTS {
            weight.matmul(x, Orientation::Transposed, stream)?.eval()?;
        }
        best = best.min(start.elapsed().as_secs_f64() / PRODUCTS as f64);
    }
    Ok(best)
}

fn array_f16(values: &[f32], shape: &[usize]) -> Result<Array> {
    let values: Vec<f16> = values.iter().copied().map(f16::from_f32).collect();
    Array::from_slice(&values, shape)
}
