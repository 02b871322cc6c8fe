//! Traffic: what each kernel reads of device memory and how often it stores
//! there, counted in the source's own loads and stores, against what the order
//! and the tile call for.

use crate::cells::Cell;
use crate::kernels::{Family, Order, values_per_lane};
use crate::report::{Load, Loads, Traffic};
use crate::symbolic::Judgement;

/// How a kernel covers the rows of a matrix.
struct Cover {
    /// Simdgroups that compute something, each reading x for itself.
    simdgroups: u64,
    /// Rows computed. Where N is no multiple of a simdgroup's rows the last
    /// simdgroup moves back and computes some again.
    rows: u64,
}

impl Cover {
    fn of(family: Family, n: u32) -> Self {
        let tile = family.rows();
        let each = tile / 2;
        let simdgroups = u64::from(n.div_ceil(each));
        let rows = if n < tile { u64::from(n) } else { simdgroups * u64::from(each) };
        Self { simdgroups, rows }
    }
}

/// Judges what the two kernels of a cell read and store: the streamed one reads
/// each weight once a tile, `qmv` once a vector.
#[must_use]
pub fn traffic(cell: &Cell, judged: &Judgement) -> Traffic {
    let (m, k) = (u64::from(cell.m), u64::from(cell.k));
    let tiles = u64::from(cell.m.div_ceil(cell.vectors));
    let row_bytes = k * u64::from(cell.bits) / 8;
    let lane = u64::from(values_per_lane(cell.bits, cell.order()));
    let streamed = Cover::of(Family::Streamed(cell.order()), cell.n);
    let narrow = Cover::of(Family::Narrow(cell.order()), cell.n);
    // The generic kernels' last block goes through load_vector_safe, which
    // names each x twice: for the sum and for the lane.
    let named_twice = match cell.order() {
        Order::Fast => 0,
        Order::Generic => (k - 1) % (32 * lane) + 1,
    };
    let x_loads = tiles * u64::from(cell.vectors) * streamed.simdgroups * (k + named_twice);
    let x_bytes = judged.tiled.x.bytes / judged.tiled.x.loads.max(1);

    let Judgement { tiled, narrow: alone, tiled_stores, narrow_stores, .. } = judged;
    let checks = [
        ("streamed: bytes of weights", tiled.w.bytes, tiles * streamed.rows * row_bytes),
        (
            "streamed: distinct bytes of weights",
            tiled.w.distinct,
            tiles * streamed.rows * row_bytes,
        ),
        ("streamed: loads of scales", tiled.scales.loads, tiles * streamed.rows * k / lane),
        ("streamed: loads of biases", tiled.biases.loads, tiles * streamed.rows * k / lane),
        ("streamed: loads of x", tiled.x.loads, x_loads),
        ("streamed: distinct bytes of x", tiled.x.distinct, m * streamed.simdgroups * k * x_bytes),
        ("qmv: distinct bytes of weights", alone.w.distinct, m * narrow.rows * row_bytes),
        ("qmv: loads of scales", alone.scales.loads, m * narrow.rows * k / lane),
        ("qmv: loads of biases", alone.biases.loads, m * narrow.rows * k / lane),
        ("qmv: distinct bytes of x", alone.x.distinct, m * narrow.simdgroups * k * x_bytes),
        // A row that is computed again is stored again, and no other.
        ("streamed: stores to y", *tiled_stores, m * streamed.rows),
        ("qmv: stores to y", *narrow_stores, m * narrow.rows),
    ];
    let wrong = checks.iter().find(|(_, found, expected)| found != expected);
    Traffic {
        cell: cell.to_string(),
        outputs: m * u64::from(cell.n),
        tile: cell.vectors,
        streamed: *tiled,
        narrow: *alone,
        fault: wrong.map(|(what, found, expected)| format!("{what} are {found}, not {expected}")),
    }
}

impl Loads {
    /// Scales and biases together.
    #[must_use]
    pub fn groups(&self) -> Load {
        let (s, b) = (self.scales, self.biases);
        Load {
            loads: s.loads + b.loads,
            bytes: s.bytes + b.bytes,
            distinct: s.distinct + b.distinct,
        }
    }
}
