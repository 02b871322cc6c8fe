//! What a build compiles, stores and leaves alone.

use std::collections::BTreeMap;
use std::fs;

use mlx_overlay_engine::buildscript::library;
use mlx_overlay_engine::publish::{Force, Identity, Options, Partial, Source, publish};
use mlx_overlay_engine::snapshot::{File, MemoryTree, Mode, ObjectId, TreePath};

use super::pinned;
use super::project::{Project, objects, set_writable};

pub const ALL: &[(&str, fn())] = &[
    ("a first build compiles all, a second one nothing", first_and_second),
    ("a change compiles the objects that include it", only_what_changed),
    ("a tree seen before needs no compiler", back_again),
    ("flags and targets do not share a folder", keys_apart),
    ("two builds at once make one library", two_at_once),
    ("a failed build leaves nothing that is trusted", failure),
    ("a missing header is told by its package", missing_package),
    ("a missing program is told by its package", missing_program),
    ("spaces, and a tree that cannot be written", spaces_and_read_only),
    ("a library that lost a part is made again", lost_part),
    ("what a published tree is decides whether it is built", published),
    ("without a tree the command to run is named", pinned::nothing_at_hand),
    ("a series is laid in memory, and follows its patches", pinned::laid_in_memory),
    ("objects that are not the pin's build nothing", pinned::damaged_objects),
    ("cargo is told what to link and what to watch", directives),
    ("compilers, compiler caches and sources are the user's", the_users_own),
];

fn first_and_second() {
    let project = Project::new();
    let first = project.build().unwrap();
    assert_eq!(first.built.map(|b| (b.objects, b.total)), Some((3, 3)));
    assert!(first.library.lib().join("libmlx.a").is_file());
    assert!(first.library.include().join("mlx/own.h").is_file());
    let second = project.build().unwrap();
    assert_eq!((second.built, second.library), (None, first.library));
}

fn only_what_changed() {
    let project = Project::new();
    let first = project.build().unwrap();
    project.write("mlx/own.h", "#pragma once\ninline int own() { return 2; }\n");
    let own = project.build().unwrap();
    assert_eq!(own.built.map(|b| (b.changed, b.objects)), Some((1, 1)));
    project.write("mlx/shared.h", "#pragma once\ninline int shared() { return 2; }\n");
    assert_eq!(objects(&project.build().unwrap()), 2);
    project.write("docs/read.me", "another\n");
    assert_eq!(objects(&project.build().unwrap()), 0);
    assert_eq!(project.stored("builds").len(), 1);
    assert_eq!(project.stored("libraries").len(), 3);
    assert_ne!(own.library.key(), first.library.key());
}

fn back_again() {
    let project = Project::new();
    let first = project.build().unwrap();
    let text = fs::read_to_string(project.tree.join("mlx/own.h")).unwrap();
    project.write("mlx/own.h", "#pragma once\ninline int own() { return 2; }\n");
    project.build().unwrap();
    project.write("mlx/own.h", &text);
    let again = project.build().unwrap();
    assert_eq!((again.built, again.library), (None, first.library));
    // The build folder was left at the other text and must come back too.
    project.write("mlx/c.cpp", "#include \"own.h\"\nint c() { return own() + 1; }\n");
    assert_eq!(project.build().unwrap().built.map(|b| (b.changed, b.objects)), Some((2, 1)));
}

fn keys_apart() {
    let project = Project::new();
    let first = project.build().unwrap();
    let other = library(&project.variables(&[("CMAKE_BUILD_TYPE", "Release")])).unwrap();
    assert_eq!(objects(&other), 3);
    assert_ne!(first.library.key(), other.library.key());
    let flagged = library(&project.variables(&[("CXXFLAGS", "-DX")])).unwrap();
    assert_eq!(objects(&flagged), 3);
    assert_eq!(project.stored("builds").len(), 3);
    assert_eq!(project.build().unwrap().built, None, "the first one is still there");
}

fn two_at_once() {
    let project = Project::new();
    let start = std::sync::Barrier::new(2);
    let build = || {
        start.wait();
        project.build().unwrap()
    };
    let (one, two) = std::thread::scope(|scope| {
        let (one, two) = (scope.spawn(build), scope.spawn(build));
        (one.join().unwrap(), two.join().unwrap())
    });
    assert_eq!(objects(&one) + objects(&two), 3);
    assert_eq!(one.library, two.library);
    assert_eq!(project.stored("libraries").len(), 1);
}

fn failure() {
    let project = Project::new();
    project.write("mlx/c.cpp", "#include \"own.h\"\nint c() { return nobody(); }\n");
    let error = project.build().unwrap_err().to_string();
    assert!(error.contains("while compiling") && error.contains("nobody"), "{error}");
    assert!(error.contains("build.log"), "{error}");
    assert!(project.stored("libraries").is_empty());

    project.write("mlx/c.cpp", "#include \"own.h\"\nint c() { return own(); }\n");
    let mended = project.build().unwrap();
    assert!(objects(&mended) >= 1);
    assert_eq!(project.stored("libraries").len(), 1);

    project.write("CMakeLists.txt", "project(mlx)\nmessage(FATAL_ERROR \"no such luck\")\n");
    let error = project.build().unwrap_err().to_string();
    assert!(error.contains("while configuring") && error.contains("no such luck"), "{error}");
}

fn missing_package() {
    let project = Project::new();
    project.write("mlx/c.cpp", "#include <json.hpp>\n");
    let error = project.build().unwrap_err();
    let remedies = error.remedies().join("\n");
    assert!(remedies.contains("nlohmann-json3-dev"), "{error}\n{remedies}");
}

fn missing_program() {
    let project = Project::new();
    for (variable, value, package) in [
        ("PATH", "/nowhere", "ninja-build"),
        ("CMAKE", "/nowhere/cmake", "cmake"),
        ("CXX", "/nowhere/c++", "g++"),
    ] {
        let error = library(&project.variables(&[(variable, value)])).unwrap_err();
        let remedies = error.remedies().join("\n");
        assert!(remedies.contains(&format!("apt-get install {package}")), "{error}\n{remedies}");
    }
    assert!(project.stored("libraries").is_empty());
}

fn spaces_and_read_only() {
    let project = Project::below("a folder/with spaces");
    set_writable(&project.tree, 0o444);
    let before = mlx_overlay_engine::buildscript::Inputs::read(&project.tree).unwrap();
    let built = project.build();
    set_writable(&project.tree, 0o644);
    let built = built.unwrap();
    assert_eq!(objects(&built), 3);
    assert_eq!(built.tree.inputs, before);
    let left: Vec<_> = fs::read_dir(project.tree.join("mlx")).unwrap().collect();
    assert_eq!(left.len(), 5, "nothing was written into the tree");
}

fn lost_part() {
    let project = Project::new();
    let first = project.build().unwrap();
    fs::remove_file(first.library.lib().join("libmlx.a")).unwrap();
    let again = project.build().unwrap();
    assert_eq!(again.built.map(|b| b.objects), Some(0), "its objects are still there");
    assert!(again.library.lib().join("libmlx.a").is_file());
}

fn published() {
    let project = Project::new();
    let file = |text: &str| File::new(Mode::Regular, text.as_bytes());
    let files = Project::files().map(|(n, t)| (TreePath::new(n).unwrap(), file(t)));
    let tree = MemoryTree(files.collect::<BTreeMap<_, _>>());
    let identity = |pin: u8, partial| Identity {
        pin: ObjectId::from_raw([pin; 20]),
        source: Source::Git { tree: ObjectId::from_raw([9; 20]) },
        series: "sha256:0".into(),
        contracts: String::new(),
        groups: vec![],
        partial,
        trial: None,
    };
    let place = project.folder.path().join("published");
    let lay = |identity: &Identity| {
        let options = Options { force: Force::Overwrite, ..Options::default() };
        publish(&place, &tree, identity, &options).unwrap();
    };
    let build = || library(&project.variables(&[("MLX_OVERLAY_TREE", place.to_str().unwrap())]));

    lay(&identity(1, None));
    let one = build().unwrap();
    assert_eq!(one.library.fact("pin"), Some(&*"01".repeat(20)));
    lay(&identity(2, None));
    let two = build().unwrap();
    assert_eq!(objects(&two), 3, "another pin, another folder");
    assert_eq!(project.stored("builds").len(), 2);
    assert_ne!(one.library.key(), two.library.key());
    assert!(one.library.lib().join("libmlx.a").is_file(), "the old one is still there");

    fs::write(place.join("mlx/own.h"), "#pragma once\ninline int own() { return 7; }\n").unwrap();
    let error = build().unwrap_err();
    assert!(error.to_string().contains("edited by hand: `mlx/own.h` modified"), "{error}");
    let named = format!("overlay apply --out '{}' --force", place.display());
    assert!(format!("{error:?}").contains(&named), "{error:?}");
    lay(&identity(2, Some(Partial { have: 7, of: 9 })));
    let error = build().unwrap_err();
    assert!(error.to_string().contains("holds 7 of MLX's 9 files"), "{error}");
}

fn directives() {
    let project = Project::new();
    let mlx = project.build().unwrap();
    let lines: Vec<String> = mlx.directives().iter().map(ToString::to_string).collect();
    let has = |line: &str| assert!(lines.iter().any(|l| l == line), "{line} in {lines:#?}");
    let tree = project.tree.display();
    has("cargo::rustc-link-lib=static:-bundle=mlx");
    has("cargo::rustc-link-lib=dylib=dl");
    has(&format!("cargo::rustc-env=MLX_OVERLAY_LIBRARY_KEY={}", mlx.library.key()));
    has(&format!("cargo::metadata=include={}", mlx.library.include().display()));
    has(&format!("cargo::rerun-if-changed={tree}/mlx"));
    has("cargo::rerun-if-env-changed=CXX");
    let no = |end: &str| assert!(!lines.iter().any(|l| l.ends_with(end)), "{end} in {lines:#?}");
    no("env-changed=TARGET");
    no(&format!("changed={tree}/docs"));
    assert!(lines.iter().any(|l| l.starts_with("cargo::warning=MLX: 3 of 3 objects compiled")));
}

/// Programs that stand before the real ones on the path and say that they ran.
fn the_users_own() {
    let project = Project::new();
    let bin = project.folder.path().join("bin");
    let ran = |name: &str| fs::read_to_string(bin.join(name).with_extension("ran")).ok();
    let stand_in = |name: &str, runs: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = bin.join(name);
        let text = format!("#!/bin/sh\necho \"$@\" >>\"$0.ran\"\nexec {runs} \"$@\"\n");
        fs::create_dir_all(&bin).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    };
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let build = |more: &[(&str, &str)]| {
        let none = [("CMAKE_C_COMPILER_LAUNCHER", ""), ("CMAKE_CXX_COMPILER_LAUNCHER", "")];
        let all: Vec<_> =
            none.iter().chain(&[("PATH", path.as_str())]).chain(more).copied().collect();
        library(&project.variables(&all)).unwrap()
    };

    stand_in("ccache", "env");
    let cached = build(&[("CXXFLAGS", "-DCACHED")]);
    assert_eq!(objects(&cached), 3);
    assert!(ran("ccache").unwrap().contains("a.cpp"));

    let compiler = stand_in("my-c++", "c++");
    assert_eq!(objects(&build(&[("CXX", &compiler)])), 3, "another compiler, another folder");
    assert!(ran("my-c++").unwrap().contains("a.cpp"));

    // A source that MLX would fetch is taken from where the user says.
    let json = project.folder.path().join("json");
    fs::create_dir_all(json.join("given")).unwrap();
    fs::write(json.join("CMakeLists.txt"), "").unwrap();
    fs::write(json.join("given/given.h"), "inline int given() { return 5; }\n").unwrap();
    let lists = Project::files().next().unwrap().1;
    let fetches = "include(FetchContent)\n\
        FetchContent_Declare(json URL https://upstream.invalid/json.zip)\n\
        FetchContent_MakeAvailable(json)\n\
        target_include_directories(mlx PRIVATE ${json_SOURCE_DIR}/given)\n";
    project.write("CMakeLists.txt", &format!("{lists}{fetches}"));
    project.write("mlx/c.cpp", "#include <given.h>\nint c() { return given(); }\n");
    let json = json.display().to_string();
    assert_eq!(objects(&build(&[("FETCHCONTENT_SOURCE_DIR_JSON", &json)])), 3);
}
