//! Does nothing unless the feature `runtime` is on, so that a drifted series
//! never makes the tool that repairs it unbuildable. With it, links MLX with
//! the overlay laid on it; `mlx_overlay_engine::buildscript` decides how.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "runtime")]
    runtime::main();
}

#[cfg(feature = "runtime")]
mod runtime {
    use std::error::Error;
    use std::path::{Path, PathBuf};
    use std::process::exit;

    use mlx_overlay_engine::buildscript::{
        Bridge, BuildError, Directive, Mlx, Variables, library, parse_depfile,
    };

    const BRIDGE: [&str; 4] = [
        "src/runtime/bridge.rs",
        "src/runtime/bridge.h",
        "src/runtime/bridge.cpp",
        "src/runtime/policy.cpp",
    ];
    const NAME: &str = "mlx_overlay_bridge";

    pub fn main() {
        let variables = Variables::new(std::env::vars_os());
        for file in BRIDGE {
            println!("cargo::rerun-if-changed={file}");
        }
        println!("cargo::rerun-if-env-changed=DOCS_RS");
        if variables.get("DOCS_RS").is_some() {
            // Documentation needs no MLX: nothing of it is linked.
            for name in ["MLX_OVERLAY_LIBRARY_KEY", "MLX_OVERLAY_PIN", "MLX_OVERLAY_METALLIB"] {
                println!("{}", Directive::Env(name, "none".into()));
            }
            return;
        }
        let linked = library(&variables).and_then(|mlx| {
            let bridge = bridge(&variables, &mlx)?;
            Ok((bridge, mlx))
        });
        match linked {
            Ok((bridge, mlx)) => {
                // The bridge uses MLX, so a linker must see it first.
                bridge.iter().chain(&mlx.directives()).for_each(|line| println!("{line}"));
            }
            Err(error) => fail(&error),
        }
    }

    /// Compiles the bridge, unless the one there is made of what is there now.
    fn bridge(variables: &Variables, mlx: &Mlx) -> Result<Vec<Directive>, BuildError> {
        let out = PathBuf::from(variables.cargos("OUT_DIR")?);
        let include = mlx.library.include();
        let mut build = cxx_build::bridge(BRIDGE[0]);
        build
            .files(BRIDGE.iter().filter(|f| f.ends_with(".cpp")))
            .std("c++20")
            .define("MLX_STATIC", None)
            .flag("-MD")
            .cargo_metadata(false);
        // What decides about its objects. Folders of headers do not: MLX's is
        // another one for each library, and cxx adds its own as it makes them.
        let compiler = build.get_compiler();
        let version = compiler.to_command().arg("--version").output();
        let version = version.map(|v| String::from_utf8_lossy(&v.stdout).into_owned());
        let mut flags = vec![compiler.path().display().to_string(), version.unwrap_or_default()];
        let arguments = compiler.args().iter().map(|a| a.to_string_lossy().into_owned());
        let folder = |a: &String| a.starts_with("-I") || Path::new(a).starts_with(&out);
        flags.extend(arguments.filter(|a| !folder(a)));
        let mut sources = BRIDGE.map(PathBuf::from).to_vec();
        sources.extend(generated(&out)?);

        let archive = out.join(format!("lib{NAME}.a"));
        let stamp = Bridge::new(&archive, &sources, &flags)?;
        if !stamp.is_fresh(&include) {
            stamp.forget()?;
            // As the system's, so that MLX's own headers make no warnings here.
            build.flag("-isystem").flag(&include);
            let objects = build.compile_intermediates();
            let mut read = Vec::new();
            for depfile in objects.iter().map(|o| o.with_extension("d")) {
                let text = std::fs::read_to_string(&depfile);
                let text = text.map_err(|source| BuildError::Io {
                    doing: "read",
                    path: depfile.clone(),
                    source,
                })?;
                read.extend(parse_depfile(&text));
            }
            cc::Build::new().objects(&objects).cargo_metadata(false).compile(NAME);
            stamp.remember(&include, &read)?;
        }
        Ok(vec![Directive::LinkSearch(out), Directive::LinkLib(format!("static={NAME}"))])
    }

    /// The C++ that cxx generated from the bridge.
    fn generated(out: &Path) -> Result<Vec<PathBuf>, BuildError> {
        let folder = out.join("cxxbridge/sources/mlx-overlay/src/runtime");
        let listed = std::fs::read_dir(&folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let listed = listed.map_err(|source| BuildError::Io {
            doing: "list",
            path: folder.clone(),
            source,
        })?;
        let mut files: Vec<PathBuf> = listed.iter().map(std::fs::DirEntry::path).collect();
        files.sort();
        Ok(files)
    }

    fn fail(error: &BuildError) -> ! {
        eprintln!("error: {error}");
        let mut cause = error.source();
        while let Some(inner) = cause {
            eprintln!("  because: {inner}");
            cause = inner.source();
        }
        for remedy in error.remedies() {
            eprintln!("  try: {remedy}");
        }
        exit(1);
    }
}
