//! What the build script of a dependent crate is told: where MLX's headers and
//! archives are, for C++ of its own. It needs none, and only passes them on.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for name in ["DEP_MLX_ROOT", "DEP_MLX_INCLUDE", "DEP_MLX_LIB", "DEP_MLX_KEY"] {
        let value = std::env::var(name).expect("mlx-overlay tells it to whoever depends on it");
        println!("cargo::rustc-env=EXAMPLE_{name}={value}");
    }
}
