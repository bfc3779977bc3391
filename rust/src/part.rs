//! The part of a selection that falls into one chunk, and how it splits over a finer grid.
//!
//! A selection of a whole array, its part in a shard and its part in an inner chunk are the same thing at three
//! scales. Positions are relative to the chunk at hand; places in the caller's array are byte offsets.

use std::sync::Arc;

use crate::region::{CopyAxis, Steps};

/// What is selected along one axis, and where it goes.
#[derive(Clone, Debug)]
pub enum Ax {
    /// `n` positions from `start`, `step` apart; the first goes to `out`, each next one `stride` bytes further.
    Range { start: usize, step: usize, n: usize, out: isize, stride: isize },
    /// Entries `from..to` of (position + `base`, place) pairs sorted by position.
    List { pairs: Arc<Vec<(usize, isize)>>, from: usize, to: usize, base: usize },
}

/// The cut of one axis: equal pieces, or pieces that begin at the given positions (the last entry is the end).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    Regular(usize),
    Offsets(Arc<Vec<usize>>),
}

impl Cut {
    pub fn find(&self, position: usize) -> usize {
        match self {
            Cut::Regular(size) => position / size,
            Cut::Offsets(at) => at.partition_point(|&start| start <= position) - 1,
        }
    }

    /// The piece as start and size.
    pub fn piece(&self, index: usize) -> (usize, usize) {
        match self {
            Cut::Regular(size) => (index * size, *size),
            Cut::Offsets(at) => (at[index], at[index + 1] - at[index]),
        }
    }
}

impl Ax {
    /// Pairs of position and place, in the order given.
    pub fn list(positions: &[i64], stride: isize) -> Ax {
        let mut pairs: Vec<(usize, isize)> =
            positions.iter().enumerate().map(|(i, &at)| (at as usize, i as isize * stride)).collect();
        if !pairs.is_sorted_by_key(|pair| pair.0) {
            pairs.sort_by_key(|pair| pair.0); // stable: of equal positions the last one written wins
        }
        let to = pairs.len();
        Ax::List { pairs: Arc::new(pairs), from: 0, to, base: 0 }
    }

    pub fn len(&self) -> usize {
        match self {
            Ax::Range { n, .. } => *n,
            Ax::List { from, to, .. } => to - from,
        }
    }

    /// First and last position; the axis is not empty.
    pub fn bounds(&self) -> (usize, usize) {
        match self {
            Ax::Range { start, step, n, .. } => (*start, start + (n - 1) * step),
            Ax::List { pairs, from, to, base } => (pairs[*from].0 - base, pairs[to - 1].0 - base),
        }
    }

    /// The selected position number `i` (for a list: of the sorted positions) and its place.
    pub fn at(&self, i: usize) -> (usize, isize) {
        match self {
            Ax::Range { start, step, out, stride, .. } => (start + i * step, out + i as isize * stride),
            Ax::List { pairs, from, base, .. } => (pairs[from + i].0 - base, pairs[from + i].1),
        }
    }

    /// The piece of the axis that covers positions `i..i + 1` of the selected ones.
    pub fn only(&self, i: usize) -> Ax {
        let (start, out) = self.at(i);
        Ax::Range { start, step: 1, n: 1, out, stride: 0 }
    }

    /// Whether this selects `size` positions from 0 on, one by one.
    pub fn covers(&self, size: usize) -> bool {
        match self {
            Ax::Range { start, step, n, .. } => *start == 0 && *n == size && (*step == 1 || *n <= 1),
            Ax::List { pairs, from, to, base } => {
                let mut next = 0;
                for (at, _) in &pairs[*from..*to] {
                    if at - base == next {
                        next += 1;
                    } else if at - base > next {
                        return false;
                    }
                }
                next >= size
            }
        }
    }

    /// The part that lies in the piece `start..start + size`, relative to it; `None` when nothing does.
    fn within(&self, piece: (usize, usize)) -> Option<Ax> {
        let (begin, size) = piece;
        match self {
            Ax::Range { start, step, n, out, stride } => {
                let first = begin.saturating_sub(*start).div_ceil(*step);
                let stop = (begin + size).saturating_sub(*start).div_ceil(*step).min(*n);
                (first < stop).then(|| Ax::Range {
                    start: start + first * step - begin,
                    step: *step,
                    n: stop - first,
                    out: out + first as isize * stride,
                    stride: *stride,
                })
            }
            Ax::List { pairs, from, to, base } => {
                let part = &pairs[*from..*to];
                let first = from + part.partition_point(|pair| pair.0 - base < begin);
                let stop = from + part.partition_point(|pair| pair.0 - base < begin + size);
                (first < stop).then(|| Ax::List { pairs: pairs.clone(), from: first, to: stop, base: base + begin })
            }
        }
    }

    /// The pieces of `cut` that hold anything, each with its part, in order.
    pub fn split(&self, cut: &Cut) -> Vec<(usize, Ax)> {
        let mut parts = Vec::new();
        let mut i = 0;
        while i < self.len() {
            let index = cut.find(self.at(i).0);
            let part = self.within(cut.piece(index)).expect("a piece holds the position it was found by");
            i += part.len();
            parts.push((index, part));
        }
        parts
    }
}

/// What is selected in one chunk.
#[derive(Clone, Debug)]
pub enum Part {
    /// The outer product of the axes.
    Box(Vec<Ax>),
    /// Points: `at` holds the positions, `ndim` per point; `out` the places.
    Points { ndim: usize, at: Vec<usize>, out: Vec<isize> },
}

impl Part {
    pub fn len(&self) -> usize {
        match self {
            Part::Box(axes) => axes.iter().map(Ax::len).product(),
            Part::Points { out, .. } => out.len(),
        }
    }

    /// With axis i being axis `order[i]` of this one.
    pub fn permuted(&self, order: &[usize]) -> Part {
        match self {
            Part::Box(axes) => Part::Box(order.iter().map(|&i| axes[i].clone()).collect()),
            Part::Points { ndim, at, out } => {
                let at = at.chunks(*ndim).flat_map(|point| order.iter().map(|&i| point[i])).collect();
                Part::Points { ndim: *ndim, at, out: out.clone() }
            }
        }
    }

    pub fn covers(&self, shape: &[usize]) -> bool {
        match self {
            Part::Box(axes) => axes.iter().zip(shape).all(|(ax, &n)| ax.covers(n)),
            Part::Points { .. } => false,
        }
    }

    /// The axes of a copy between a C-contiguous chunk with byte `strides` and the caller's array, and where each begins.
    pub fn copy_axes(axes: &[Ax], strides: &[isize]) -> (isize, isize, Vec<CopyAxis>) {
        let (mut inner, mut outer) = (0, 0);
        let mut made = Vec::with_capacity(axes.len());
        for (ax, &width) in axes.iter().zip(strides) {
            match ax {
                Ax::Range { start, step, n, out, stride } => {
                    inner += *start as isize * width;
                    outer += out;
                    let src = Steps::Affine(*step as isize * width);
                    made.push(CopyAxis { n: *n, src, dst: Steps::Affine(*stride) });
                }
                Ax::List { pairs, from, to, base } => {
                    let part = &pairs[*from..*to];
                    made.push(CopyAxis {
                        n: part.len(),
                        src: Steps::Table(part.iter().map(|p| (p.0 - base) as isize * width).collect()),
                        dst: Steps::Table(part.iter().map(|p| p.1).collect()),
                    });
                }
            }
        }
        (inner, outer, made)
    }
}

/// Byte strides of a C-contiguous chunk.
pub fn strides(shape: &[usize], item: usize) -> Vec<isize> {
    let mut strides = vec![0; shape.len()];
    let mut width = item as isize;
    for (stride, &n) in strides.iter_mut().zip(shape).rev() {
        *stride = width;
        width *= n as isize;
    }
    strides
}

/// A box or point selection spread over a grid: its non-empty parts, made when asked for, one at a time.
pub enum Spread {
    Box { axes: Vec<Vec<(usize, Ax)>> },
    Points { parts: Vec<(Vec<usize>, Part)> },
}

impl Spread {
    pub fn new(part: &Part, cuts: &[Cut]) -> Spread {
        match part {
            Part::Box(axes) => Spread::Box { axes: axes.iter().zip(cuts).map(|(ax, cut)| ax.split(cut)).collect() },
            Part::Points { ndim, at, out } => Spread::Points { parts: group_points(*ndim, at, out, cuts) },
        }
    }

    /// How many pieces of the grid hold anything.
    pub fn len(&self) -> usize {
        match self {
            Spread::Box { axes } => axes.iter().map(Vec::len).product(),
            Spread::Points { parts } => parts.len(),
        }
    }

    /// Piece number `number` in C order: its index in the grid and its part.
    pub fn get(&self, mut number: usize) -> (Vec<usize>, Part) {
        match self {
            Spread::Box { axes } => {
                let mut index = vec![0; axes.len()];
                let mut part = Vec::with_capacity(axes.len());
                for (i, pieces) in axes.iter().enumerate().rev() {
                    let (at, ax) = &pieces[number % pieces.len()];
                    number /= pieces.len();
                    index[i] = *at;
                    part.push(ax.clone());
                }
                part.reverse();
                (index, Part::Box(part))
            }
            Spread::Points { parts } => parts[number].clone(),
        }
    }
}

fn group_points(ndim: usize, at: &[usize], out: &[isize], cuts: &[Cut]) -> Vec<(Vec<usize>, Part)> {
    let n = out.len();
    let index: Vec<usize> =
        at.chunks(ndim).flat_map(|point| point.iter().zip(cuts).map(|(&p, cut)| cut.find(p))).collect();
    let of = |i: usize| &index[i * ndim..(i + 1) * ndim];
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| of(a).cmp(of(b))); // stable: of equal points the last one written wins
    let mut parts: Vec<(Vec<usize>, Part)> = Vec::new();
    for group in order.chunk_by(|&a, &b| of(a) == of(b)) {
        let chunk = of(group[0]).to_vec();
        let begin: Vec<usize> = chunk.iter().zip(cuts).map(|(&i, cut)| cut.piece(i).0).collect();
        let mut inside = Vec::with_capacity(group.len() * ndim);
        for &i in group {
            inside.extend(at[i * ndim..(i + 1) * ndim].iter().zip(&begin).map(|(p, b)| p - b));
        }
        let places = group.iter().map(|&i| out[i]).collect();
        parts.push((chunk, Part::Points { ndim, at: inside, out: places }));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_splits_into_the_pieces_it_touches() {
        let ax = Ax::Range { start: 3, step: 5, n: 4, out: 0, stride: 2 }; // 3 8 13 18
        let parts = ax.split(&Cut::Regular(4));
        let seen: Vec<_> = parts.iter().map(|(i, ax)| (*i, ax.at(0), ax.len())).collect();
        assert_eq!(seen, [(0, (3, 0), 1), (2, (0, 2), 1), (3, (1, 4), 1), (4, (2, 6), 1)]);
    }

    #[test]
    fn a_list_splits_by_position_and_keeps_the_place() {
        let ax = Ax::list(&[9, 1, 4, 1], 8);
        let parts = ax.split(&Cut::Offsets(Arc::new(vec![0, 4, 10])));
        let seen: Vec<_> =
            parts.iter().map(|(i, ax)| (*i, (0..ax.len()).map(|k| ax.at(k)).collect::<Vec<_>>())).collect();
        assert_eq!(seen, [(0, vec![(1, 8), (1, 24)]), (1, vec![(0, 16), (5, 0)])]);
    }
}
