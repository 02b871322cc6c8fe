//! What the bridge promises. Where a policy can have an effect, on a Mac, the
//! same tests ask for more.

use std::process::Command;

use mlx_overlay::exactness::{Compared, random};
use mlx_overlay::runtime::*;

const INFO: &str = "the library says what it is";
const GUARDED: &str = "the guard is on from the start";

pub const ALL: &[(&str, fn())] = &[
    (INFO, info_is_whole),
    ("a library of another key is refused at the start", stale_library),
    ("slices go in and come back, every type", slices),
    ("what does not fit is refused in words", misfits),
    ("what MLX does not look at is refused before it", unlooked_at),
    ("dequantizing gives near values, every mode", near_values),
    ("a product is that of the dequantized matrix", products),
    ("a stack of matrices is multiplied matrix by matrix", stacks),
    ("a thread computes on a stream of its own", threads),
    ("the nearest policy wins, and can be taken back", policies),
    ("two streams have policies of their own", streams_apart),
    (GUARDED, guarded_from_the_start),
    ("the guard certifies where the policy has an effect", guard),
    ("a probe says what it compared", probes),
];

fn affine(bits: usize) -> Quantization {
    Quantization { mode: Mode::Affine, group_size: 64, bits }
}

fn cpu() -> Stream {
    Stream::new(Device::Cpu).unwrap()
}

fn matrix(n: usize, k: usize, seed: u64) -> Array {
    Array::from_slice(&random(n * k, seed), &[n, k]).unwrap()
}

fn info_is_whole() {
    let info = info().unwrap();
    assert_eq!(info.library_key.len(), 32);
    assert!(info.mlx_version.starts_with("0."), "{info:?}");
    assert!(!info.device.is_empty() && !info.os_build.is_empty(), "{info:?}");
    assert_eq!(info.metal, cfg!(target_os = "macos"));
}

/// A copy of this program in which one of the two keys is another one, as if it
/// had been linked with an older library.
fn stale_library() {
    let key = info().unwrap().library_key;
    let mut program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let at = program.windows(key.len()).position(|w| w == key.as_bytes()).unwrap();
    program[at] = if program[at] == b'0' { b'1' } else { b'0' };
    let dir = tempfile::tempdir().unwrap();
    let stale = dir.path().join("stale");
    std::fs::write(&stale, program).unwrap();
    let mode = std::fs::metadata(std::env::current_exe().unwrap()).unwrap().permissions();
    std::fs::set_permissions(&stale, mode).unwrap();
    let run = Command::new(&stale).args(["--exact", INFO]).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout) + String::from_utf8_lossy(&run.stderr);
    assert!(!run.status.success(), "{said}");
    assert!(said.contains("StaleLibrary"), "{said}");
}

fn slices() {
    fn there_and_back<T: Element + PartialEq + std::fmt::Debug>(values: &[T], shape: &[usize]) {
        let array = Array::from_slice(values, shape).unwrap();
        assert_eq!(array.shape(), shape);
        assert_eq!(array.element(), Some(T::TYPE));
        assert_eq!(array.to_vec::<T>().unwrap(), values);
        assert_eq!(array.handle().unwrap().to_vec::<T>().unwrap(), values);
    }
    there_and_back(&[1.5f32, -0.0, f32::MAX, 1e-45, 2.0, 3.0], &[2, 3]);
    there_and_back(&[1.5, -2.0, 6e-8, 65504.0].map(f16::from_f32), &[4]);
    there_and_back(&[1.5, -2.0, 1e38, 0.0].map(bf16::from_f32), &[1, 2, 2]);
    there_and_back(&[0, 7, u32::MAX], &[3, 1]);
    there_and_back::<f32>(&[], &[0, 5]);
}

fn misfits() {
    let said = |error: Error| error.to_string();
    let short = said(Array::from_slice(&[1f32; 5], &[2, 3]).unwrap_err());
    assert!(short.contains("wants 6 elements of 4 bytes, and there are 20 bytes"), "{short}");
    let huge = said(Array::from_slice(&[1f32], &[1 << 16, 1 << 16]).unwrap_err());
    assert!(huge.contains("2^31"), "{huge}");
    let other = Array::from_slice(&[1f32], &[1]).unwrap().to_vec::<u32>().unwrap_err();
    assert_eq!(said(other), "the array holds float32, not uint32");

    let stream = cpu();
    let dense = matrix(4, 64, 1);
    // MLX's own words arrive.
    let group = Quantization { group_size: 48, ..affine(4) };
    let group = said(Quantized::new(&dense, group, &stream).unwrap_err());
    assert!(group.contains("[quantize]"), "{group}");
    let weight = Quantized::new(&dense, affine(4), &stream).unwrap();
    let narrow = Array::from_slice(&[1f32; 32], &[1, 32]).unwrap();
    let narrow = said(weight.matmul(&narrow, Orientation::Transposed, &stream).unwrap_err());
    assert!(narrow.contains("[quantized_matmul]"), "{narrow}");
    if info().unwrap().metal {
        return;
    }
    let gpu = said(Stream::new(Device::Gpu).unwrap_err());
    assert!(gpu.contains("no GPU"), "{gpu}");
}

/// MLX divides by some of these, reads past others, or takes a part for the whole.
fn unlooked_at() {
    let stream = cpu();
    let refused = |made: Result<Array>, part: &str| {
        let said = made.expect_err(part).to_string();
        assert!(said.contains(part), "{said}");
    };
    for none in [Quantization { group_size: 0, ..affine(4) }, affine(0)] {
        let error = Quantized::new(&matrix(4, 64, 1), none, &stream).unwrap_err();
        assert!(error.to_string().contains("it must be 1 or more"), "{error}");
    }
    let parts = |packed: &[usize], scales: &[usize], biases: &[usize]| {
        let packed_values = vec![0u32; packed.iter().product()];
        let packed = Array::from_slice(&packed_values, packed).unwrap();
        let ones = |shape: &[usize]| {
            Array::from_slice(&vec![1f32; shape.iter().product()], shape).unwrap()
        };
        Quantized::from_parts(packed, ones(scales), Some(ones(biases)), affine(4))
    };
    parts(&[32, 16], &[32, 2], &[32, 2]).unwrap();
    for (packed, scales, biases) in [
        (&[64, 16][..], &[1, 2][..], &[1, 2][..]),
        (&[32, 16], &[2], &[2]),
        (&[32, 16], &[32, 4], &[32, 4]),
        (&[32, 16], &[32, 2], &[1, 2]),
        (&[16], &[2], &[2]),
    ] {
        let error = parts(packed, scales, biases).unwrap_err().to_string();
        assert!(error.starts_with("[quantized] "), "{packed:?} {scales:?} {biases:?}: {error}");
    }
    // MLX multiplies with these, and its kernels read past what there is.
    let mode = |mode, group_size, bits| Quantization { mode, group_size, bits };
    for unknown in [
        mode(Mode::Mxfp8, 4096, 8),
        mode(Mode::Mxfp4, 32, 8),
        mode(Mode::Nvfp4, 32, 4),
        mode(Mode::Affine, 64, 7),
        mode(Mode::Affine, 256, 4),
    ] {
        let array = |values: &[u32]| Array::from_slice(values, &[1, 1]).unwrap();
        let made = Quantized::from_parts(array(&[0]), array(&[0]), Some(array(&[0])), unknown);
        let error = made.unwrap_err().to_string();
        assert!(error.contains("There is no"), "{unknown}: {error}");
    }
    let weight = Quantized::new(&matrix(16, 128, 1), affine(4), &stream).unwrap();
    let times = |x: &Array| weight.matmul(x, Orientation::Transposed, &stream);
    let nothing = Array::from_slice::<f32>(&[], &[0, 128]).unwrap();
    refused(times(&nothing), "no elements");
    refused(times(&Array::from_slice(&[0u32; 128], &[1, 128]).unwrap()), "uint32");
    let stack = Array::from_slice(&random(3 * 16 * 128, 2), &[3, 16, 128]).unwrap();
    let stack = Quantized::new(&stack, affine(4), &stream).unwrap();
    let flat = stack.matmul(&matrix(2, 128, 3), Orientation::Transposed, &stream);
    refused(flat, "The matrix is a stack");
    let tall = parts(&[1 << 16, 8], &[1 << 16, 1], &[1 << 16, 1]).unwrap();
    let wide = tall.matmul(&matrix(1 << 15, 64, 4), Orientation::Transposed, &stream);
    refused(wide, "More than 2^31 - 1 elements");
}

fn near_values() {
    let stream = cpu();
    let dense = matrix(8, 128, 3);
    let exact: Vec<f32> = dense.to_vec().unwrap();
    let fp = |mode, group_size, bits| Quantization { mode, group_size, bits };
    let affines = [2, 3, 4, 5, 6, 8].map(|bits| (affine(bits), 8.0 / f32::from(1u16 << bits)));
    // The scale of an mx group is a power of two below its largest value, which
    // may be cut by an eighth or a quarter.
    let fps = [
        (fp(Mode::Mxfp4, 32, 4), 1.1),
        (fp(Mode::Mxfp8, 32, 8), 1.0),
        (fp(Mode::Nvfp4, 16, 4), 0.9),
    ];
    for (how, most) in affines.into_iter().chain(fps) {
        let weight = Quantized::new(&dense, how, &stream).unwrap();
        assert_eq!(weight.shape(), [8, 128]);
        assert_eq!(weight.biases().unwrap().is_some(), how.mode == Mode::Affine);
        let near = weight.dequantize(&stream).unwrap();
        let near: Vec<f32> = match near.element() {
            Some(ElementType::Bfloat16) => {
                near.to_vec::<bf16>().unwrap().iter().map(|x| x.to_f32()).collect()
            }
            _ => near.to_vec().unwrap(),
        };
        let off = near.iter().zip(&exact).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
        assert!(off > 0.0 && off < most, "{how}: off by {off}");
    }
}

/// The product in double precision.
fn reference(x: &[f32], w: &[f32], m: usize, n: usize, k: usize, transposed: bool) -> Vec<f64> {
    let at = |n_: usize, k_: usize| if transposed { w[n_ * k + k_] } else { w[k_ * n + n_] };
    let value = |i: usize| {
        let (row, column) = (i / n, i % n);
        (0..k).map(|j| f64::from(x[row * k + j]) * f64::from(at(column, j))).sum()
    };
    (0..m * n).map(value).collect()
}

fn close(got: &[f32], wanted: &[f64], context: &str) {
    assert_eq!(got.len(), wanted.len(), "{context}");
    for (got, wanted) in got.iter().zip(wanted) {
        let off = (f64::from(*got) - wanted).abs();
        assert!(off < 1e-3 * (1.0 + wanted.abs()), "{context}: {got} for {wanted}");
    }
}

fn products() {
    let stream = cpu();
    let (n, k) = (64, 128);
    for bits in [2, 3, 4, 6, 8] {
        for (orientation, dense) in
            [(Orientation::Transposed, matrix(n, k, 5)), (Orientation::Plain, matrix(k, n, 5))]
        {
            let weight = Quantized::new(&dense, affine(bits), &stream).unwrap();
            let w: Vec<f32> = weight.dequantize(&stream).unwrap().to_vec().unwrap();
            for m in 1..=8 {
                let x = random(m * k, 6);
                let array = Array::from_slice(&x, &[m, k]).unwrap();
                let y = weight.matmul(&array, orientation, &stream).unwrap();
                assert_eq!(y.shape(), [m, n]);
                let transposed = orientation == Orientation::Transposed;
                let wanted = reference(&x, &w, m, n, k, transposed);
                let y: Vec<f32> = y.to_vec().unwrap();
                close(&y, &wanted, &format!("{bits} bits, {orientation:?}, M = {m}"));
            }
        }
    }
}

fn stacks() {
    let stream = cpu();
    let (stack, m, n, k) = (2, 3, 64, 64);
    let dense = Array::from_slice(&random(stack * n * k, 8), &[stack, n, k]).unwrap();
    let weight = Quantized::new(&dense, affine(4), &stream).unwrap();
    let loaded = Quantized::from_parts(
        weight.packed().unwrap(),
        weight.scales().unwrap(),
        weight.biases().unwrap(),
        affine(4),
    )
    .unwrap();
    assert_eq!(loaded.shape(), [stack, n, k]);
    let w: Vec<f32> = weight.dequantize(&stream).unwrap().to_vec().unwrap();
    let x = random(stack * m * k, 9);
    let array = Array::from_slice(&x, &[stack, m, k]).unwrap();
    for weight in [&weight, &loaded] {
        let y = weight.matmul(&array, Orientation::Transposed, &stream).unwrap();
        let y: Vec<f32> = y.to_vec().unwrap();
        for s in 0..stack {
            let (x, w) = (&x[s * m * k..][..m * k], &w[s * n * k..][..n * k]);
            close(&y[s * m * n..][..m * n], &reference(x, w, m, n, k, true), "stack");
        }
    }
}

fn threads() {
    let of_thread = |seed| {
        let stream = cpu();
        let weight = Quantized::new(&matrix(64, 64, seed), affine(4), &stream).unwrap();
        let x = Array::from_slice(&random(64, 1), &[1, 64]).unwrap();
        let y = weight.matmul(&x, Orientation::Transposed, &stream).unwrap();
        let y: Vec<f32> = y.to_vec().unwrap();
        stream.synchronize().unwrap();
        y
    };
    let here: Vec<_> = (0..4).map(of_thread).collect();
    let there: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|seed| scope.spawn(move || of_thread(seed))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(here, there);
}

fn policies() {
    let stream = cpu();
    let mut verdicts = Verdicts::on(machine().unwrap());
    let mut set = |scope, setting| set_policy(scope, &setting, &mut verdicts).unwrap().effect;
    let own = Scope::Stream(stream.id());
    if effect().unwrap() == Effect::NoOverlay {
        assert_eq!(set(own, Setting::Narrow), Effect::NoOverlay);
        let said = effective_policy(stream.id()).unwrap_err().to_string();
        assert!(said.contains("without the overlay's policy"), "{said}");
        return;
    }
    let in_force = || effective_policy(stream.id()).unwrap();
    let from_start = in_force();
    // A stream on the processor dispatches no Metal kernel, whatever is set.
    assert_eq!(set(own, Setting::Narrow), Effect::None);
    assert_eq!((policy(own).unwrap(), in_force()), (Some(Policy::Narrow), Some(Policy::Narrow)));
    set(Scope::Process, Setting::Unguarded);
    assert_eq!(policy(Scope::Process).unwrap(), Some(Policy::Streamed));
    assert_eq!(in_force(), Some(Policy::Narrow), "the stream's own setting is nearer");
    set(own, Setting::Unset);
    assert_eq!((policy(own).unwrap(), in_force()), (None, Some(Policy::Streamed)));
    set(Scope::Process, Setting::Unset);
    assert_eq!(in_force(), from_start);

    // A stream's name is good in every thread.
    let id = stream.id();
    let elsewhere = move || {
        let mut verdicts = Verdicts::on(machine().unwrap());
        set_policy(Scope::Stream(id), &Setting::Wide, &mut verdicts).unwrap();
    };
    std::thread::spawn(elsewhere).join().unwrap();
    assert_eq!(policy(own).unwrap(), Some(Policy::Wide));
}

fn streams_apart() {
    if effect().unwrap() == Effect::NoOverlay {
        return;
    }
    let (one, two) = (cpu(), cpu());
    assert_ne!(one.id(), two.id());
    let mut verdicts = Verdicts::on(machine().unwrap());
    set_policy(Scope::Stream(one.id()), &Setting::Narrow, &mut verdicts).unwrap();
    set_policy(Scope::Stream(two.id()), &Setting::Wide, &mut verdicts).unwrap();
    let policies = [&one, &two].map(|s| policy(Scope::Stream(s.id())).unwrap());
    assert_eq!(policies, [Some(Policy::Narrow), Some(Policy::Wide)]);
}

/// In a process of its own, where nothing was set before.
fn guarded_from_the_start() {
    const ALONE: &str = "MLX_OVERLAY_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let program = std::env::current_exe().unwrap();
        let run = Command::new(program)
            .args(["--exact", GUARDED])
            .env(ALONE, "1")
            .env("MLX_OVERLAY_QMV", "streamed")
            .output()
            .unwrap();
        assert!(run.status.success(), "{run:?}");
        return;
    }
    let Some(on) = guarded().unwrap() else { return };
    assert!(on);
    let mut verdicts = Verdicts::on(machine().unwrap());
    let scope = Scope::Process;
    set_policy(scope, &Setting::Unguarded, &mut verdicts).unwrap();
    assert_eq!(guarded().unwrap(), Some(false));
    set_policy(scope, &Setting::Unset, &mut verdicts).unwrap();
    assert_eq!(guarded().unwrap(), Some(true));
    // The environment's policy, and no certificate.
    assert_eq!(effective_policy(cpu().id()).unwrap(), Some(Policy::Streamed));
}

fn guard() {
    let dir = tempfile::tempdir().unwrap();
    let mut verdicts = Verdicts::kept_in(dir.path(), machine().unwrap()).unwrap();
    let stream = cpu();
    let cells = Cell::all_of(ElementType::Float16, affine(4));
    let setting = Setting::Streamed(cells.clone());
    let outcome = set_policy(Scope::Stream(stream.id()), &setting, &mut verdicts).unwrap();
    match effect().unwrap() {
        Effect::Dispatches => {
            assert_eq!(outcome.verdicts.len(), cells.len());
            assert_ne!(outcome.enforcement, Enforcement::NoEffect);
        }
        _ => {
            // Nothing was tried, so nothing may be called certified.
            assert_eq!(outcome.enforcement, Enforcement::NoEffect);
            assert_eq!(outcome.verdicts, []);
            assert_eq!(verdicts.on_cell(cells[0]), None);
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }
    assert_eq!(refused_dispatches().unwrap(), 0);
}

fn array_of(element: ElementType, values: &[f32], shape: &[usize]) -> Array {
    let rounded = values.iter().copied();
    match element {
        ElementType::Float16 => {
            Array::from_slice(&rounded.map(f16::from_f32).collect::<Vec<_>>(), shape)
        }
        ElementType::Bfloat16 => {
            Array::from_slice(&rounded.map(bf16::from_f32).collect::<Vec<_>>(), shape)
        }
        _ => Array::from_slice(values, shape),
    }
    .unwrap()
}

fn probes() {
    let stream = cpu();
    let weight = Quantized::new(&matrix(64, 512, 11), affine(4), &stream).unwrap();
    let draws = Draws { seed: 1, count: 2 };
    for element in [ElementType::Float32, ElementType::Float16, ElementType::Bfloat16] {
        let dense = array_of(element, &random(64 * 512, 11), &[64, 512]);
        let weight = Quantized::new(&dense, affine(4), &stream).unwrap();
        let report = probe(&weight, element, 5, draws, &stream).unwrap();
        assert_eq!(report.comparison.elements, 2 * 5 * 64);
        assert_ne!(report.effect, Effect::Dispatches, "this is the processor");
        if !info().unwrap().metal {
            assert_eq!(report.comparison.compared(), Compared::NotCounted);
            assert!(report.to_string().contains(&report.effect.to_string()), "{report}");
        }
    }
    let zero = probe(&weight, ElementType::Float32, 0, draws, &stream).unwrap_err().to_string();
    assert_eq!(zero, "the width of a block is 0; it must be 1 or more");
}
