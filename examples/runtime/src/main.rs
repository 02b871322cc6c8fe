//! Quantizes a matrix, multiplies 1 to 8 vectors with it under each policy, and
//! says what ran: the backend, the policy in force, the kernels dispatched.

use std::process::ExitCode;

use mlx_overlay::exactness::random;
use mlx_overlay::runtime::*;

/// Outputs and inputs of the layer: the fast kernels' shape.
const N: usize = 512;
const K: usize = 1024;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let info = info()?;
    let device = Device::best()?;
    println!("MLX {} of pin {}, library {}", info.mlx_version, info.pin, info.library_key);
    println!("backend: {}, on {}", if info.metal { "Metal" } else { "CPU" }, info.device);
    println!("policy: {}", effect()?);
    println!("headers: {}", env!("EXAMPLE_DEP_MLX_INCLUDE"));

    let stream = Stream::new(device)?;
    let dense = Array::from_slice(&random(N * K, 1), &[N, K])?;
    let how = Quantization { mode: Mode::Affine, group_size: 64, bits: 4 };
    let weight = Quantized::new(&dense, how, &stream)?;
    println!("weight: {N} × {K}, {how}, off by {:.3} at most", error_of(&weight, &dense, &stream)?);

    let cells = Cell::all_of(ElementType::Float32, how);
    let mut verdicts = Verdicts::on(machine()?);
    let settings = [Setting::Wide, Setting::Narrow, Setting::Streamed(cells)];
    for setting in settings {
        let scope = Scope::Stream(stream.id());
        let set = set_policy(scope, &setting, &mut verdicts)?;
        let in_force = match set.effect {
            Effect::NoOverlay => "none".to_owned(),
            _ => effective_policy(stream.id())?.map_or("none", Policy::as_str).to_owned(),
        };
        println!("\npolicy {in_force}: {}; guard: {:?}", set.effect, set.enforcement);
        for (cell, verdict) in &set.verdicts {
            println!("  {cell}: {verdict}");
        }
        for m in 1..=8 {
            let before = dispatches()?;
            let x = Array::from_slice(&random(m * K, 2), &[1, m, K])?;
            let y = weight.matmul(&x, Orientation::Transposed, &stream)?;
            let y: Vec<f32> = y.to_vec()?;
            let ran = match dispatches()?.zip(before) {
                Some((now, before)) => now.since(&before).to_string(),
                None => "not counted here".into(),
            };
            println!("  M = {m}: {} values, the first {:+.4}; dispatched: {ran}", y.len(), y[0]);
        }
        println!("  {}", probe(&weight, ElementType::Float32, 5, Draws::default(), &stream)?);
    }
    println!("\nrefused for want of a certificate: {}", refused_dispatches()?);
    Ok(())
}

/// The largest difference that quantizing made.
fn error_of(weight: &Quantized, dense: &Array, stream: &Stream) -> Result<f32> {
    let near: Vec<f32> = weight.dequantize(stream)?.to_vec()?;
    let exact: Vec<f32> = dense.to_vec()?;
    Ok(near.iter().zip(&exact).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max))
}
