//! Running CMake and what it runs.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::inputs::write_if_changed;
use super::missing::{CMAKE, METAL_CPP, Missing, NINJA};
use super::recipe::cmake_program;
use super::store::Link;
use super::{BuildError, LibraryKey, Recipe, Variables, json};

/// How many lines of a failed build's log an error holds.
const TAIL: usize = 40;

/// Runs inside MLX's own `CMakeLists.txt`, which stays the top one: adds the
/// key to the library, and writes down what the library needs to be linked.
const HOOK: &str = r#"# Written by mlx-overlay; included by project(mlx).
function(mlx_overlay_finish)
  target_sources(mlx PRIVATE "${MLX_OVERLAY_KEY}")
  set(lines "archive $<TARGET_FILE:mlx>")
  get_target_property(libraries mlx LINK_LIBRARIES)
  foreach(library IN LISTS libraries)
    string(REGEX REPLACE "^\\$<BUILD_INTERFACE:(.*)>$" "\\1" library "${library}")
    if(NOT TARGET "${library}")
      list(APPEND lines "link ${library}")
      continue()
    endif()
    get_target_property(type "${library}" TYPE)
    get_target_property(imported "${library}" IMPORTED)
    if(imported AND type MATCHES "SHARED_LIBRARY|STATIC_LIBRARY|UNKNOWN_LIBRARY")
      list(APPEND lines "link $<TARGET_FILE:${library}>")
    elseif(type STREQUAL "STATIC_LIBRARY")
      list(APPEND lines "archive $<TARGET_FILE:${library}>")
    endif()
  endforeach()
  list(JOIN lines "\n" text)
  file(GENERATE OUTPUT "${MLX_OVERLAY_LINK}" CONTENT "${text}\n")
endfunction()
cmake_language(DEFER CALL mlx_overlay_finish)
"#;

/// What a build made.
#[derive(Debug)]
pub(super) struct Made {
    /// The static libraries, MLX's own first.
    pub archives: Vec<PathBuf>,
    /// What else a program must be linked with, in order.
    pub links: Vec<Link>,
    /// The compiled Metal kernels, where there are any.
    pub metallib: Option<PathBuf>,
    /// How many objects were compiled.
    pub objects: usize,
    /// How many objects the library has.
    pub total: usize,
}

/// Configures and builds in `folder`, which holds the tree's copy in `src`, under
/// `lock`.
///
/// # Errors
/// A program or package is missing, or CMake or the compiler failed.
pub(super) fn build(
    recipe: &Recipe,
    variables: &Variables,
    folder: &Path,
    lock: &File,
    key: &LibraryKey,
) -> Result<Made, BuildError> {
    preflight(recipe, variables)?;
    let (source, build) = (folder.join("src"), folder.join("build"));
    let (hook, key_file) = (folder.join("overlay.cmake"), folder.join("overlay_key.c"));
    let link = folder.join("link.txt");
    write_if_changed(&hook, HOOK.as_bytes())?;
    write_if_changed(&key_file, key_source(key).as_bytes())?;

    let log_path = folder.join("build.log");
    let log = File::create(&log_path).map_err(BuildError::io("write", &log_path))?;
    let run = |doing, command: &mut Command| {
        // CMake and what it starts hold the lock too: should this process be
        // killed, they go on writing here, and a next build must wait for them.
        command.stdin(lock.try_clone().map_err(BuildError::io("lock", folder))?);
        run(doing, command, &log, &log_path)
    };
    forget_elsewhere(&source, &build)?;

    let mut configure = cmake(recipe, variables, folder);
    configure.arg("-S").arg(&source).arg("-B").arg(&build).args(["-G", &recipe.generator]);
    let mut define = |name: &str, value: &OsString| {
        let mut argument = OsString::from(format!("-D{name}="));
        argument.push(value);
        configure.arg(argument);
    };
    recipe.definitions.iter().for_each(|(name, value)| define(name, value));
    define("CMAKE_PROJECT_mlx_INCLUDE", &hook.into());
    define("MLX_OVERLAY_KEY", &key_file.into());
    define("MLX_OVERLAY_LINK", &link.clone().into());
    if let Some(json) = json::folder(variables, &folder.join("json"))? {
        define("FETCHCONTENT_SOURCE_DIR_JSON", &json.into());
    }
    run("configuring", &mut configure)?;

    let mut compile = cmake(recipe, variables, folder);
    compile.arg("--build").arg(&build).args(["--parallel", &recipe.jobs]);
    // Compilers hold no lock: Ninja gives each an input of its own, and sccache a
    // server. One that outlived a killed build may write over an object before it
    // goes into the archive. Ninja sees that when it looks again.
    let mut said = run("compiling", &mut compile)?;
    loop {
        let before = compiled(&said);
        said = run("compiling", &mut compile)?;
        if compiled(&said) == before {
            break;
        }
    }

    let (archives, links) = read_links(&link)?;
    let metallib = build.join("mlx/backend/metal/kernels/mlx.metallib");
    Ok(Made {
        archives,
        links,
        metallib: metallib.is_file().then_some(metallib),
        objects: compiled(&said),
        total: total(&build.join("compile_commands.json"))?,
    })
}

/// Takes a build folder away that was configured for another place: CMake would
/// refuse it, as in a cache that was moved or restored elsewhere.
fn forget_elsewhere(source: &Path, build: &Path) -> Result<(), BuildError> {
    let Ok(cache) = fs::read_to_string(build.join("CMakeCache.txt")) else { return Ok(()) };
    let home = cache.lines().find_map(|l| l.strip_prefix("CMAKE_HOME_DIRECTORY:INTERNAL="));
    let here = |home: &str| fs::canonicalize(home).ok() == fs::canonicalize(source).ok();
    if home.is_some_and(here) {
        return Ok(());
    }
    fs::remove_dir_all(build).map_err(BuildError::io("remove", build))
}

/// What would only come out as a riddle later.
fn preflight(recipe: &Recipe, variables: &Variables) -> Result<(), BuildError> {
    let names = ["ninja", "ninja-build", "samu"];
    let has_ninja = names.iter().any(|n| variables.program(n).is_some())
        || recipe.definitions.iter().any(|(n, _)| n == "CMAKE_MAKE_PROGRAM");
    if recipe.generator.starts_with("Ninja") && !has_ninja {
        return Err(BuildError::Missing { missing: &NINJA });
    }
    let metal_cpp = variables.get("FETCHCONTENT_SOURCE_DIR_METAL_CPP").is_some();
    if recipe.backends.metal && !metal_cpp {
        return Err(BuildError::Missing { missing: &METAL_CPP });
    }
    Ok(())
}

fn cmake(recipe: &Recipe, variables: &Variables, folder: &Path) -> Command {
    let mut command = Command::new(cmake_program(variables));
    command.current_dir(folder).envs(recipe.variables.iter().map(|(n, v)| (n, v)));
    let launcher = recipe.launcher.as_ref().map(Path::new).and_then(Path::file_stem);
    if launcher == Some("ccache".as_ref()) {
        // Paths below the folder count as relative, so that another cache
        // folder, or another machine's, finds the same objects.
        for (name, value) in
            [("CCACHE_BASEDIR", folder.as_os_str()), ("CCACHE_NOHASHDIR", "1".as_ref())]
        {
            if variables.get(name).is_none() {
                command.env(name, value);
            }
        }
    }
    command
}

/// Runs `command` with its words in the log, and gives the log as it then is.
fn run(
    doing: &'static str,
    command: &mut Command,
    log: &File,
    path: &Path,
) -> Result<String, BuildError> {
    let handle = || log.try_clone().map_err(BuildError::io("write", path));
    let status = match command.stdout(handle()?).stderr(handle()?).status() {
        Ok(status) => status,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(BuildError::Missing { missing: &CMAKE });
        }
        Err(source) => {
            let path = PathBuf::from(command.get_program());
            return Err(BuildError::Io { doing: "run", path, source });
        }
    };
    let said = fs::read(path).map_err(BuildError::io("read", path))?;
    let said = String::from_utf8_lossy(&said).into_owned();
    if status.success() {
        return Ok(said);
    }
    let missing = Missing::told_by(&said);
    Err(BuildError::Failed { doing, tail: tail(&said), log: path.to_path_buf(), missing })
}

/// The last lines of a log that say something: Ninja's count of what went well
/// is left out.
fn tail(said: &str) -> String {
    let telling = |line: &&str| !line.trim().is_empty() && !is_object(line);
    let lines: Vec<&str> = said.lines().filter(telling).collect();
    lines[lines.len().saturating_sub(TAIL)..].join("\n")
}

fn is_object(line: &str) -> bool {
    line.contains("Building C object") || line.contains("Building CXX object")
}

/// The number of objects that a log tells were compiled, whether a compiler
/// cache knew them or not. The key's own is not counted.
fn compiled(said: &str) -> usize {
    said.lines().filter(|line| is_object(line) && !line.contains("overlay_key.c")).count()
}

fn total(path: &Path) -> Result<usize, BuildError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        // Generators other than Ninja and Make write no such file.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(e) => return Err(BuildError::io("read", path)(e)),
    };
    let commands: Vec<serde_json::Value> = serde_json::from_slice(&text)
        .map_err(|e| BuildError::Form { path: path.to_path_buf(), why: e.to_string() })?;
    let file =
        |c: &serde_json::Value| c["file"].as_str().is_some_and(|f| !f.ends_with("overlay_key.c"));
    Ok(commands.iter().filter(|c| file(c)).count())
}

fn key_source(key: &LibraryKey) -> String {
    format!("const char mlx_overlay_library_key[] = \"{key}\";\n")
}

/// Reads what the hook wrote: the archives, and what they need, each once.
fn read_links(path: &Path) -> Result<(Vec<PathBuf>, Vec<Link>), BuildError> {
    let text = fs::read_to_string(path).map_err(BuildError::io("read", path))?;
    let (mut archives, mut links) = (Vec::new(), Vec::new());
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("archive", file)) => archives.push(PathBuf::from(file)),
            Some(("link", item)) => {
                if let Some(link) = Link::parse(item)
                    && !links.contains(&link)
                {
                    links.push(link);
                }
            }
            _ => {
                let why = format!("`{line}` is neither an archive nor a link");
                return Err(BuildError::Form { path: path.to_path_buf(), why });
            }
        }
    }
    Ok((archives, links))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "-- Configuring done\n[1/4] Building CXX object a.cpp.o\n\
        [2/4] Building C object x/overlay_key.c.o\n[3/4] Building CXX object b.cpp.o\n\
        FAILED: b.cpp.o\nb.cpp:1:1: error: no\nninja: build stopped\n";

    #[test]
    fn a_build_that_was_configured_elsewhere_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let (source, build) = (dir.path().join("src"), dir.path().join("build"));
        fs::create_dir(&source).unwrap();
        for (home, stays) in [(source.clone(), true), (dir.path().join("gone"), false)] {
            fs::create_dir_all(&build).unwrap();
            let text = format!("# x\nCMAKE_HOME_DIRECTORY:INTERNAL={}\n", home.display());
            fs::write(build.join("CMakeCache.txt"), text).unwrap();
            forget_elsewhere(&source, &build).unwrap();
            assert_eq!(build.exists(), stays, "{}", home.display());
        }
        forget_elsewhere(&source, &build).unwrap();
    }

    #[test]
    fn objects_are_counted_without_the_key() {
        assert_eq!(compiled(LOG), 2);
    }

    #[test]
    fn the_tail_is_what_the_compiler_said() {
        assert!(tail(LOG).ends_with("FAILED: b.cpp.o\nb.cpp:1:1: error: no\nninja: build stopped"));
        let long: String = (0..100).map(|n| format!("line {n}\n")).collect();
        assert_eq!(tail(&long).lines().count(), TAIL);
    }

    #[test]
    fn links_are_read_once_each() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("link.txt");
        fs::write(
            &path,
            "archive /b/libmlx.a\nlink dl\nlink /usr/lib/libopenblas.so\nlink -lm\nlink dl\n",
        )
        .unwrap();
        let (archives, links) = read_links(&path).unwrap();
        assert_eq!(archives, [Path::new("/b/libmlx.a")]);
        let dylib = |n: &str| Link::Dylib(n.into());
        let openblas = Link::File("/usr/lib/libopenblas.so".into());
        assert_eq!(links, [dylib("dl"), openblas, dylib("m")]);
        fs::write(&path, "what\n").unwrap();
        assert!(read_links(&path).is_err());
    }
}
