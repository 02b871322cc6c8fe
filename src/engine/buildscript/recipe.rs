//! What MLX is built for and with: platform, backends, compiler, definitions.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use super::given::{Given, given, require_same};
use super::key::BuildKey;
use super::missing::{CMAKE, COMPILER, Missing};
use super::{BuildError, Variables};

/// The system and processor built for, as cargo names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// The target triple.
    pub target: String,
    /// The system: `linux`, `macos`, ….
    pub os: String,
    /// The processor: `x86_64`, `aarch64`, ….
    pub arch: String,
    /// Whether the building machine is of another triple.
    pub cross: bool,
}

/// The backends that MLX is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backends {
    /// The Metal backend.
    pub metal: bool,
    /// The CPU backend; MLX always takes Accelerate for it on Apple's systems.
    pub cpu: bool,
}

/// All that decides what comes out, but the laid tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// What is built for.
    pub platform: Platform,
    /// What MLX is built with.
    pub backends: Backends,
    /// Definitions for CMake: name and value.
    pub definitions: Vec<(String, OsString)>,
    /// Variables for CMake and the compilers, besides those inherited.
    pub variables: Vec<(String, OsString)>,
    /// CMake's generator.
    pub generator: String,
    /// How many compilers may run at once.
    pub jobs: String,
    /// The program that caches compilations, where there is one.
    pub launcher: Option<OsString>,
    /// What the user names by path.
    given: Vec<Given>,
    /// The compiler's words about itself, and CMake's.
    toolchain: Vec<(String, String)>,
    /// What the user asked for and this platform does not have.
    pub left_out: Vec<String>,
}

/// Variables that change what a compiler puts out.
const FLAG_VARIABLES: [&str; 7] = [
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "SDKROOT",
    "DEVELOPER_DIR",
    "MACOSX_DEPLOYMENT_TARGET",
];

/// Variables named `CMAKE_…` that CMake reads from the environment itself, and
/// that would mean something else as a definition.
const CMAKE_OWN: [&str; 15] = [
    "CMAKE_PREFIX_PATH",
    "CMAKE_APPBUNDLE_PATH",
    "CMAKE_FRAMEWORK_PATH",
    "CMAKE_INCLUDE_PATH",
    "CMAKE_LIBRARY_PATH",
    "CMAKE_PROGRAM_PATH",
    "CMAKE_TOOLCHAIN_FILE",
    "CMAKE_GENERATOR",
    "CMAKE_GENERATOR_INSTANCE",
    "CMAKE_GENERATOR_PLATFORM",
    "CMAKE_GENERATOR_TOOLSET",
    "CMAKE_BUILD_PARALLEL_LEVEL",
    "CMAKE_CONFIG_TYPE",
    "CMAKE_NO_VERBOSE",
    "CMAKE_INSTALL_MODE",
];

/// Definitions that users are likely to set for the first time between two
/// builds: asked for by name so that cargo watches them.
const WATCHED: [&str; 12] = [
    "CMAKE_BUILD_TYPE",
    "CMAKE_CXX_FLAGS",
    "CMAKE_CXX_FLAGS_DEBUG",
    "CMAKE_CXX_FLAGS_RELEASE",
    "CMAKE_INTERPROCEDURAL_OPTIMIZATION",
    "CMAKE_CXX_COMPILER",
    "CMAKE_CXX_COMPILER_LAUNCHER",
    "CMAKE_PREFIX_PATH",
    "CMAKE_TOOLCHAIN_FILE",
    "FETCHCONTENT_SOURCE_DIR_FMT",
    "FETCHCONTENT_SOURCE_DIR_JSON",
    "FETCHCONTENT_SOURCE_DIR_METAL_CPP",
];

impl Platform {
    /// What cargo builds for.
    ///
    /// # Errors
    /// This is no build script, or the target cannot be built for from here.
    pub fn of(variables: &Variables) -> Result<Self, BuildError> {
        let target = variables.cargos("TARGET")?;
        let platform = Self {
            os: variables.cargos("CARGO_CFG_TARGET_OS")?,
            arch: variables.cargos("CARGO_CFG_TARGET_ARCH")?,
            cross: variables.cargos("HOST")? != target,
            target,
        };
        let refuse = |why| Err(BuildError::Platform { target: platform.target.clone(), why });
        match platform.os.as_str() {
            "linux" => {}
            "macos" | "ios" if platform.arch == "x86_64" => {
                return refuse("MLX's own CMake files refuse it");
            }
            "macos" | "ios" => {}
            _ => return refuse("there is a recipe for Linux, macOS and iOS only"),
        }
        let toolchain = variables.get("CMAKE_TOOLCHAIN_FILE").is_some();
        if platform.cross && platform.os != "macos" && !toolchain {
            return refuse("it is another system than this one; set CMAKE_TOOLCHAIN_FILE");
        }
        Ok(platform)
    }

    /// Whether it is one of Apple's systems.
    #[must_use]
    pub fn apple(&self) -> bool {
        matches!(self.os.as_str(), "macos" | "ios")
    }
}

impl Backends {
    /// The backends that the crate's features ask for, and the names of those
    /// that this platform does not have. Without a feature, all it has.
    #[must_use]
    pub fn of(variables: &Variables, platform: &Platform) -> (Self, Vec<String>) {
        let asked = |name| variables.get(name).is_some();
        let metal = asked("CARGO_FEATURE_METAL");
        let accelerate = asked("CARGO_FEATURE_ACCELERATE");
        let cpu = asked("CARGO_FEATURE_CPU") || accelerate;
        if platform.apple() {
            let none = !metal && !cpu;
            return (Self { metal: metal || none, cpu: cpu || none }, vec![]);
        }
        let missing = [(metal, "metal"), (accelerate, "accelerate")];
        let left_out = missing.iter().filter(|(asked, _)| *asked).map(|(_, n)| (*n).to_owned());
        (Self { metal: false, cpu: true }, left_out.collect())
    }
}

impl Recipe {
    /// Works out how MLX is built, from cargo's variables and the user's.
    ///
    /// # Errors
    /// A variable has no meaning, the platform cannot be built for, or CMake
    /// or the compiler is missing.
    pub fn of(variables: &Variables) -> Result<Self, BuildError> {
        let platform = Platform::of(variables)?;
        let (backends, left_out) = Backends::of(variables, &platform);
        let own = own_definitions(variables, &platform, backends);
        let mut definitions = own;
        let mut add = |name: String, value: OsString| {
            definitions.retain(|(n, _)| *n != name);
            definitions.push((name, value));
        };
        variables.watch(&WATCHED);
        for (name, value) in variables.beginning("CMAKE_") {
            if !CMAKE_OWN.contains(&name.as_str()) {
                add(name, value);
            }
        }
        variables.beginning("FETCHCONTENT_SOURCE_DIR_").into_iter().for_each(|(n, v)| add(n, v));
        let given = given(variables)?;
        let launcher = launcher(variables, &definitions);
        if let Some(program) = &launcher {
            for language in ["C", "CXX"] {
                let name = format!("CMAKE_{language}_COMPILER_LAUNCHER");
                if !definitions.iter().any(|(n, _)| *n == name) {
                    definitions.push((name, program.clone()));
                }
            }
        }
        definitions.sort();
        let compilers = compilers(variables, &platform.target);
        let jobs = variables.text("CMAKE_BUILD_PARALLEL_LEVEL");
        Ok(Self {
            toolchain: toolchain(variables, &compilers, &definitions)?,
            generator: variables.text("CMAKE_GENERATOR").unwrap_or_else(|| "Ninja".into()),
            jobs: jobs.or_else(|| variables.text("NUM_JOBS")).unwrap_or_else(|| "1".into()),
            variables: compilers,
            given,
            platform,
            backends,
            definitions,
            launcher,
            left_out,
        })
    }

    /// Fails where a file or folder of the user's changed since.
    ///
    /// # Errors
    /// Names the variable that names it.
    pub(super) fn require_given(&self, variables: &Variables) -> Result<(), BuildError> {
        require_same(&self.given, variables)
    }

    /// Files and folders of the user's that the library is made of besides the
    /// tree.
    pub fn given(&self) -> impl Iterator<Item = &Path> {
        self.given.iter().map(|g| g.path.as_path())
    }

    /// The key of the folder that MLX is built in, from a tree of this pin and
    /// source.
    #[must_use]
    pub fn key(&self, variables: &Variables, pin: &str, source: &str) -> BuildKey {
        let text = |s: &OsString| s.to_string_lossy().into_owned();
        let mut facts = vec![
            ("engine".into(), env!("CARGO_PKG_VERSION").into()),
            ("pin".into(), pin.into()),
            ("source".into(), source.into()),
            ("target".into(), self.platform.target.clone()),
            ("features".into(), format!("metal={} cpu={}", self.backends.metal, self.backends.cpu)),
            ("generator".into(), self.generator.clone()),
        ];
        facts.extend(self.toolchain.iter().cloned());
        // A launcher changes how fast a library is made, not the library.
        let defined = self.definitions.iter().filter(|(n, _)| !n.ends_with("_COMPILER_LAUNCHER"));
        facts.extend(defined.map(|(n, v)| (format!("-D{n}"), text(v))));
        facts.extend(self.given.iter().map(|g| (format!("{} holds", g.name), g.digest.clone())));
        let flags = FLAG_VARIABLES.iter().chain(&CMAKE_OWN[..7]);
        for name in flags {
            facts.extend(variables.text(name).map(|value| ((*name).to_owned(), value)));
        }
        BuildKey::new(facts)
    }
}

/// The definitions that this crate makes, before the user's.
fn own_definitions(
    variables: &Variables,
    platform: &Platform,
    backends: Backends,
) -> Vec<(String, OsString)> {
    let switch = |on| if on { "ON" } else { "OFF" };
    let fmt_given = variables.get("FETCHCONTENT_SOURCE_DIR_FMT").is_some();
    let mut own = vec![
        ("CMAKE_BUILD_TYPE", "Release"),
        ("CMAKE_EXPORT_COMPILE_COMMANDS", "ON"),
        ("FETCHCONTENT_FULLY_DISCONNECTED", "ON"),
        ("BUILD_SHARED_LIBS", "OFF"),
        ("MLX_BUILD_TESTS", "OFF"),
        ("MLX_BUILD_EXAMPLES", "OFF"),
        ("MLX_BUILD_BENCHMARKS", "OFF"),
        ("MLX_BUILD_PYTHON_BINDINGS", "OFF"),
        ("MLX_BUILD_CUDA", "OFF"),
        // It would fetch a library, and nothing here reads such files.
        ("MLX_BUILD_GGUF", "OFF"),
        // MLX would put ccache in place of the launcher chosen here.
        ("MLX_USE_CCACHE", "OFF"),
        ("MLX_BUILD_METAL", switch(backends.metal)),
        ("MLX_BUILD_CPU", switch(backends.cpu)),
        ("USE_SYSTEM_FMT", switch(!fmt_given)),
    ];
    if platform.os == "macos" {
        own.push(("CMAKE_OSX_ARCHITECTURES", "arm64"));
    }
    own.into_iter().map(|(n, v)| (n.to_owned(), v.into())).collect()
}

/// The compilers that the variables of the `cc` crate name for this target, in
/// the form that CMake reads.
fn compilers(variables: &Variables, target: &str) -> Vec<(String, OsString)> {
    let under = target.replace('-', "_");
    let named = |name: &str| {
        let forms =
            [format!("{name}_{target}"), format!("{name}_{under}"), format!("TARGET_{name}")];
        let special = forms.iter().find_map(|n| variables.get(n));
        special.or_else(|| variables.get(name)).map(|v| (name.to_owned(), v.to_owned()))
    };
    ["CC", "CXX"].iter().filter_map(|n| named(n)).collect()
}

/// The compiler cache in use: the one that the user defines, else ccache or
/// sccache where one is installed.
fn launcher(variables: &Variables, definitions: &[(String, OsString)]) -> Option<OsString> {
    let given = definitions.iter().find(|(n, _)| n == "CMAKE_CXX_COMPILER_LAUNCHER");
    match given {
        Some((_, program)) => Some(program.clone()),
        None => ["ccache", "sccache"].iter().find_map(|n| variables.program(n)).map(Into::into),
    }
}

/// What CMake and the C++ compiler say of themselves.
fn toolchain(
    variables: &Variables,
    compilers: &[(String, OsString)],
    definitions: &[(String, OsString)],
) -> Result<Vec<(String, String)>, BuildError> {
    let defined = definitions.iter().find(|(n, _)| n == "CMAKE_CXX_COMPILER").map(|(_, v)| v);
    let named = compilers.iter().find(|(n, _)| n == "CXX").map(|(_, v)| v);
    let compiler = defined.or(named).cloned().unwrap_or_else(|| "c++".into());
    let compiler = compiler.to_string_lossy().into_owned();
    let cmake = cmake_program(variables);
    Ok(vec![
        ("cmake".into(), version(&cmake, &[]).ok_or_else(|| lacking(&CMAKE))?),
        ("c++".into(), format!("{compiler}: {}", compiler_version(&compiler)?)),
    ])
}

/// The CMake to run: the one that `CMAKE` names, as for the `cmake` crate.
pub(super) fn cmake_program(variables: &Variables) -> OsString {
    variables.get("CMAKE").map_or_else(|| "cmake".into(), OsString::from)
}

/// `CXX` may hold a launcher or a flag beside the compiler.
fn compiler_version(compiler: &str) -> Result<String, BuildError> {
    let whole = version(compiler.as_ref(), &[]);
    let parts: Vec<&str> = compiler.split_whitespace().collect();
    let split = || parts.split_first().and_then(|(p, rest)| version(p.as_ref(), rest));
    whole.or_else(split).ok_or_else(|| lacking(&COMPILER))
}

fn version(program: &std::ffi::OsStr, arguments: &[&str]) -> Option<String> {
    let output = Command::new(Path::new(program)).args(arguments).arg("--version").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn lacking(missing: &'static Missing) -> BuildError {
    BuildError::Missing { missing }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cargo(os: &str, arch: &str, more: &[(&str, &str)]) -> Variables {
        let target = format!("{arch}-{os}");
        let own = [
            ("TARGET", target.as_str()),
            ("HOST", target.as_str()),
            ("CARGO_CFG_TARGET_OS", os),
            ("CARGO_CFG_TARGET_ARCH", arch),
        ];
        Variables::new(own.into_iter().chain(more.iter().copied()))
    }

    fn backends(os: &str, features: &[&str]) -> (Backends, Vec<String>) {
        let features: Vec<_> = features.iter().map(|f| (*f, "1")).collect();
        let variables = cargo(os, "aarch64", &features);
        Backends::of(&variables, &Platform::of(&variables).unwrap())
    }

    #[test]
    fn backends_follow_the_platform() {
        let all = Backends { metal: true, cpu: true };
        let cpu = Backends { metal: false, cpu: true };
        assert_eq!(backends("macos", &[]), (all, vec![]));
        assert_eq!(
            backends("macos", &["CARGO_FEATURE_METAL"]).0,
            Backends { metal: true, cpu: false }
        );
        assert_eq!(backends("macos", &["CARGO_FEATURE_ACCELERATE"]).0, cpu);
        assert_eq!(backends("linux", &[]), (cpu, vec![]));
        assert_eq!(backends("linux", &["CARGO_FEATURE_METAL"]), (cpu, vec!["metal".into()]));
    }

    #[test]
    fn what_has_no_recipe_is_refused_with_a_reason() {
        for (os, arch, word) in [("windows", "x86_64", "recipe"), ("macos", "x86_64", "refuse")] {
            let error = Platform::of(&cargo(os, arch, &[])).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        let cross = Variables::new([
            ("TARGET", "aarch64-unknown-linux-gnu"),
            ("HOST", "x86_64-unknown-linux-gnu"),
            ("CARGO_CFG_TARGET_OS", "linux"),
            ("CARGO_CFG_TARGET_ARCH", "aarch64"),
        ]);
        let error = Platform::of(&cross).unwrap_err().to_string();
        assert!(error.contains("CMAKE_TOOLCHAIN_FILE"), "{error}");
    }

    #[test]
    fn the_users_definitions_win_and_every_one_is_in_the_key() {
        let path = std::env::var("PATH").unwrap();
        let plain = cargo("linux", "x86_64", &[("PATH", &path)]);
        let set = cargo(
            "linux",
            "x86_64",
            &[
                ("PATH", &path),
                ("CMAKE_BUILD_TYPE", "Debug"),
                ("CMAKE_CXX_COMPILER_LAUNCHER", "mine"),
            ],
        );
        let (a, b) = (Recipe::of(&plain).unwrap(), Recipe::of(&set).unwrap());
        let value = |r: &Recipe, name: &str| {
            r.definitions
                .iter()
                .filter(|(n, _)| n == name)
                .map(|(_, v)| v.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(value(&a, "CMAKE_BUILD_TYPE"), ["Release"]);
        assert_eq!(value(&b, "CMAKE_BUILD_TYPE"), ["Debug"]);
        assert_eq!(value(&b, "CMAKE_CXX_COMPILER_LAUNCHER"), ["mine"]);
        assert_eq!(value(&b, "CMAKE_C_COMPILER_LAUNCHER"), ["mine"]);
        assert_ne!(a.key(&plain, "p", "s").to_string(), b.key(&set, "p", "s").to_string());
        assert!(plain.asked().contains(&"CMAKE_BUILD_TYPE".to_owned()));
    }

    #[test]
    fn the_compiler_for_the_target_wins() {
        let variables = cargo("linux", "x86_64", &[("CXX", "a"), ("CXX_x86_64_linux", "b")]);
        assert_eq!(compilers(&variables, "x86_64-linux"), [("CXX".to_owned(), "b".into())]);
    }

    #[test]
    fn a_compiler_that_is_not_there_is_missing() {
        let error = compiler_version("/no/such/compiler").unwrap_err();
        assert!(error.remedies()[0].contains("g++"), "{error}");
    }

    #[test]
    fn a_relative_source_folder_is_refused() {
        let variables = cargo("linux", "x86_64", &[("FETCHCONTENT_SOURCE_DIR_JSON", "json")]);
        assert!(Recipe::of(&variables).unwrap_err().to_string().contains("absolute"));
    }
}
