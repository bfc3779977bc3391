//! Plan a selection over a grid: find the part of each chunk.
//!
//! A selection of a whole array, its part in a shard and its part in an inner chunk have one representation, `Part`.
//! Positions are relative to the array, shard or inner chunk; places in the caller's array are byte offsets.

use std::ops::Range;
use std::sync::Arc;

use crate::allocate;
use crate::error::Result;
use crate::region::{CopyAxis, Steps};

/// The selection along one axis, with the place of each position in the caller's array.
#[derive(Clone, Debug)]
pub enum AxisSelection {
    /// `n` positions from `start`, `step` apart; the first goes to `out`, each next one `stride` bytes further.
    Range { start: usize, step: usize, n: usize, out: isize, stride: isize },
    /// Entries `from..to` of (position + `base`, place) pairs sorted by position.
    List { pairs: Arc<Vec<(usize, isize)>>, from: usize, to: usize, base: usize },
}

/// One axis of a grid: intervals of one size, or intervals between the given positions (the last one is the end).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GridAxis {
    Regular(usize),
    Offsets(Arc<Vec<usize>>),
}

impl GridAxis {
    pub fn find(&self, position: usize) -> usize {
        match self {
            GridAxis::Regular(size) => position / size,
            GridAxis::Offsets(at) => at.partition_point(|&start| start <= position) - 1,
        }
    }

    /// Return the start and the size of an interval.
    pub fn interval(&self, index: usize) -> (usize, usize) {
        match self {
            GridAxis::Regular(size) => (index * size, *size),
            GridAxis::Offsets(at) => (at[index], at[index + 1] - at[index]),
        }
    }
}

impl AxisSelection {
    /// Select positions in any order; the first has place 0, each next one lies `stride` bytes further.
    pub fn list(positions: &[i64], stride: isize) -> Result<AxisSelection> {
        let pairs = positions.iter().enumerate().map(|(i, &at)| (at as usize, i as isize * stride));
        let mut pairs: Vec<(usize, isize)> = allocate::collected(pairs)?;
        if !pairs.is_sorted_by_key(|pair| pair.0) {
            pairs.sort_by_key(|pair| pair.0); // stable: of equal positions the last one written wins
        }
        let to = pairs.len();
        Ok(AxisSelection::List { pairs: Arc::new(pairs), from: 0, to, base: 0 })
    }

    pub fn len(&self) -> usize {
        match self {
            AxisSelection::Range { n, .. } => *n,
            AxisSelection::List { from, to, .. } => to - from,
        }
    }

    /// First and last position; the axis is not empty.
    pub fn bounds(&self) -> (usize, usize) {
        match self {
            AxisSelection::Range { start, step, n, .. } => (*start, start + (n - 1) * step),
            AxisSelection::List { pairs, from, to, base } => (pairs[*from].0 - base, pairs[to - 1].0 - base),
        }
    }

    /// The selected position number `i` (for a list: of the sorted positions) and its place.
    pub fn at(&self, i: usize) -> (usize, isize) {
        match self {
            AxisSelection::Range { start, step, out, stride, .. } => (start + i * step, out + i as isize * stride),
            AxisSelection::List { pairs, from, base, .. } => (pairs[from + i].0 - base, pairs[from + i].1),
        }
    }

    /// Select position number `i` alone.
    pub fn only(&self, i: usize) -> AxisSelection {
        let (start, out) = self.at(i);
        AxisSelection::Range { start, step: 1, n: 1, out, stride: 0 }
    }

    /// Whether all of the first `size` positions are selected.
    pub fn covers(&self, size: usize) -> bool {
        match self {
            AxisSelection::Range { start, step, n, .. } => *start == 0 && *n == size && (*step == 1 || *n <= 1),
            AxisSelection::List { pairs, from, to, base } => {
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

    /// Return the part of the selection in an interval, relative to the interval's start; `None` when it is empty.
    fn within(&self, interval: (usize, usize)) -> Option<AxisSelection> {
        let (begin, size) = interval;
        match self {
            AxisSelection::Range { start, step, n, out, stride } => {
                let first = begin.saturating_sub(*start).div_ceil(*step);
                let stop = (begin + size).saturating_sub(*start).div_ceil(*step).min(*n);
                (first < stop).then(|| AxisSelection::Range {
                    start: start + first * step - begin,
                    step: *step,
                    n: stop - first,
                    out: out + first as isize * stride,
                    stride: *stride,
                })
            }
            AxisSelection::List { pairs, from, to, base } => {
                let part = &pairs[*from..*to];
                let first = from + part.partition_point(|pair| pair.0 - base < begin);
                let stop = from + part.partition_point(|pair| pair.0 - base < begin + size);
                (first < stop).then(|| AxisSelection::List {
                    pairs: pairs.clone(),
                    from: first,
                    to: stop,
                    base: base + begin,
                })
            }
        }
    }

    /// Split the selection by the intervals of `axis`: number and part of each interval that is not empty.
    pub fn split(&self, axis: &GridAxis) -> Result<Vec<(usize, AxisSelection)>> {
        if self.len() == 0 {
            return Ok(Vec::new());
        }
        let (first, last) = self.bounds();
        let mut parts = allocate::with_room(self.len().min(axis.find(last) - axis.find(first) + 1))?;
        let mut i = 0;
        while i < self.len() {
            let index = axis.find(self.at(i).0);
            let part = self.within(axis.interval(index)).expect("an interval holds the position it was found by");
            i += part.len();
            parts.push((index, part));
        }
        Ok(parts)
    }
}

/// The part of a selection in one chunk.
#[derive(Clone, Debug)]
pub enum Part {
    /// The outer product of the axes.
    Box(Vec<AxisSelection>),
    /// Points: `at` holds the positions, `ndim` per point; `out` the places.
    Points { ndim: usize, at: Vec<usize>, out: Vec<isize> },
}

impl Part {
    pub fn len(&self) -> usize {
        match self {
            Part::Box(axes) => axes.iter().map(AxisSelection::len).product(),
            Part::Points { out, .. } => out.len(),
        }
    }

    /// Permute the axes: axis i becomes axis `order[i]` of this part.
    pub fn permuted(&self, order: &[usize]) -> Result<Part> {
        Ok(match self {
            Part::Box(axes) => Part::Box(order.iter().map(|&i| axes[i].clone()).collect()),
            Part::Points { ndim, at, out } => {
                let at = allocate::collected((0..at.len()).map(|k| at[k - k % ndim + order[k % ndim]]))?;
                Part::Points { ndim: *ndim, at, out: allocate::collected(out.iter().copied())? }
            }
        })
    }

    /// The part of a box in `count` positions of an axis from `first` on, relative to these; `None` when it is empty.
    pub fn rows(axes: &[AxisSelection], axis: usize, first: usize, count: usize) -> Option<Part> {
        let mut some = axes.to_vec();
        some[axis] = axes[axis].within((first, count))?;
        Some(Part::Box(some))
    }

    pub fn covers(&self, shape: &[usize]) -> bool {
        match self {
            Part::Box(axes) => axes.iter().zip(shape).all(|(axis, &n)| axis.covers(n)),
            Part::Points { .. } => false,
        }
    }

    /// Return the axes of a copy between a C-contiguous chunk with byte `strides` and the caller's array, and both offsets.
    pub fn copy_axes(axes: &[AxisSelection], strides: &[isize]) -> (isize, isize, Vec<CopyAxis>) {
        let (mut inner, mut outer) = (0, 0);
        let mut made = Vec::with_capacity(axes.len());
        for (axis, &width) in axes.iter().zip(strides) {
            match axis {
                AxisSelection::Range { start, step, n, out, stride } => {
                    inner += *start as isize * width;
                    outer += out;
                    let src = Steps::Affine(*step as isize * width);
                    made.push(CopyAxis { n: *n, src, dst: Steps::Affine(*stride) });
                }
                AxisSelection::List { pairs, from, to, base } => {
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

/// The non-empty parts of a box or of points over a grid, each computed when it is requested.
pub enum Plan {
    Box {
        axes: Vec<Vec<(usize, AxisSelection)>>,
    },
    /// Points sorted by their chunk: those of chunk number `i` end before point `ends[i]`.
    Points {
        ndim: usize,
        at: Vec<usize>,
        out: Vec<isize>,
        ends: Vec<usize>,
        grid_axes: Vec<GridAxis>,
    },
}

impl Plan {
    pub fn new(part: &Part, grid_axes: &[GridAxis]) -> Result<Plan> {
        match part {
            Part::Box(axes) => {
                let axes = axes.iter().zip(grid_axes).map(|(selection, axis)| selection.split(axis));
                Ok(Plan::Box { axes: axes.collect::<Result<_>>()? })
            }
            Part::Points { ndim, at, out } => Plan::of_points(*ndim, at, out, grid_axes),
        }
    }

    fn of_points(ndim: usize, at: &[usize], out: &[isize], grid_axes: &[GridAxis]) -> Result<Plan> {
        let index: Vec<usize> = allocate::collected((0..at.len()).map(|k| grid_axes[k % ndim].find(at[k])))?;
        let of = |i: usize| &index[i * ndim..(i + 1) * ndim];
        let mut order: Vec<usize> = allocate::collected(0..out.len())?;
        allocate::probe(8 * out.len())?; // the sort takes as much again
        order.sort_by(|&a, &b| of(a).cmp(of(b))); // stable: of equal points the last one written wins
        let by_chunk = || order.chunk_by(|&a, &b| of(a) == of(b));
        let mut ends = allocate::with_room(by_chunk().count())?;
        ends.extend(by_chunk().scan(0, |end, group| {
            *end += group.len();
            Some(*end)
        }));
        drop(index);
        let mut sorted = allocate::with_room(at.len())?;
        order.iter().for_each(|&i| sorted.extend_from_slice(&at[i * ndim..(i + 1) * ndim]));
        let out = allocate::collected(order.iter().map(|&i| out[i]))?;
        Ok(Plan::Points { ndim, at: sorted, out, ends, grid_axes: grid_axes.to_vec() })
    }

    /// Count the chunks that the selection touches.
    pub fn len(&self) -> usize {
        match self {
            Plan::Box { axes } => axes.iter().map(Vec::len).product(),
            Plan::Points { ends, .. } => ends.len(),
        }
    }

    /// Return the coords of chunk number `number`, in C order.
    pub fn coords(&self, number: usize) -> Vec<usize> {
        match self {
            Plan::Box { axes } => {
                let mut index = vec![0; axes.len()];
                let mut rest = number;
                for (at, intervals) in index.iter_mut().zip(axes).rev() {
                    *at = intervals[rest % intervals.len()].0;
                    rest /= intervals.len();
                }
                index
            }
            Plan::Points { ndim, at, grid_axes, .. } => {
                let first = self.points(number).start * ndim;
                at[first..first + ndim].iter().zip(grid_axes).map(|(&position, axis)| axis.find(position)).collect()
            }
        }
    }

    /// Return the coords and the part of chunk number `number`, in C order.
    pub fn get(&self, number: usize) -> Result<(Vec<usize>, Part)> {
        let coords = self.coords(number);
        let part = match self {
            Plan::Box { axes } => {
                let mut part = Vec::with_capacity(axes.len());
                let mut rest = number;
                for intervals in axes.iter().rev() {
                    part.push(intervals[rest % intervals.len()].1.clone());
                    rest /= intervals.len();
                }
                part.reverse();
                Part::Box(part)
            }
            Plan::Points { ndim, at, out, grid_axes, .. } => {
                let points = self.points(number);
                let begin: Vec<usize> = coords.iter().zip(grid_axes).map(|(&i, axis)| axis.interval(i).0).collect();
                let mut inside = allocate::with_room(points.len() * ndim)?;
                let at = &at[points.start * ndim..points.end * ndim];
                inside.extend(at.iter().zip(begin.iter().cycle()).map(|(position, start)| position - start));
                Part::Points { ndim: *ndim, at: inside, out: allocate::collected(out[points].iter().copied())? }
            }
        };
        Ok((coords, part))
    }

    /// Return the numbers of the points of chunk number `number`.
    fn points(&self, number: usize) -> Range<usize> {
        match self {
            Plan::Points { ends, .. } => number.checked_sub(1).map_or(0, |before| ends[before])..ends[number],
            Plan::Box { .. } => 0..0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_splits_into_the_intervals_it_touches() {
        let axis = AxisSelection::Range { start: 3, step: 5, n: 4, out: 0, stride: 2 }; // 3 8 13 18
        let parts = axis.split(&GridAxis::Regular(4)).expect("room");
        let seen: Vec<_> = parts.iter().map(|(i, axis)| (*i, axis.at(0), axis.len())).collect();
        assert_eq!(seen, [(0, (3, 0), 1), (2, (0, 2), 1), (3, (1, 4), 1), (4, (2, 6), 1)]);
    }

    #[test]
    fn a_list_splits_by_position_and_keeps_the_place() {
        let axis = AxisSelection::list(&[9, 1, 4, 1], 8).expect("room");
        let parts = axis.split(&GridAxis::Offsets(Arc::new(vec![0, 4, 10]))).expect("room");
        let seen: Vec<_> =
            parts.iter().map(|(i, axis)| (*i, (0..axis.len()).map(|k| axis.at(k)).collect::<Vec<_>>())).collect();
        assert_eq!(seen, [(0, vec![(1, 8), (1, 24)]), (1, vec![(0, 16), (5, 0)])]);
    }

    #[test]
    fn points_are_grouped_by_chunk_and_keep_their_order_and_places() {
        let axes = [GridAxis::Regular(4), GridAxis::Offsets(Arc::new(vec![0, 1, 10]))];
        let at = vec![5, 3, 0, 0, 6, 9, 0, 0, 7, 0];
        let points = Part::Points { ndim: 2, at, out: vec![0, 8, 16, 24, 32] };
        let plan = Plan::new(&points, &axes).expect("room");
        let seen: Vec<_> = (0..plan.len())
            .map(|number| match plan.get(number).expect("room") {
                (coords, Part::Points { at, out, .. }) => (coords, at, out),
                (_, Part::Box(_)) => panic!("points"),
            })
            .collect();
        let expected = [
            (vec![0, 0], vec![0, 0, 0, 0], vec![8, 24]),
            (vec![1, 0], vec![3, 0], vec![32]),
            (vec![1, 1], vec![1, 2, 2, 8], vec![0, 16]),
        ];
        assert_eq!(seen, expected);
    }
}
