"""The kernel that counts and measures differences of two arrays in one pass, as LLVM IR text. Pure.

It reads blocks of elements. Of a block whose bits are equal it writes only zeros; of another one, and of the block
behind it, it looks at 16 elements at a time, and at nothing but their bits where those are equal. ``FIELDS`` are what
it writes of each block. How far apart numbers are in units of the last place is counted by powers of two, in tables of
32-bit counters: one call of the kernel may see less than 2^32 elements.

``kernel(arguments, first, last)`` works on the blocks from ``first`` to before ``last``. ``arguments`` holds the
addresses of both arrays, of the records and of the tables, the number of elements (a multiple of ``UNIT``), and the
tolerance: the absolute and the relative one as float64, and the largest distance that is near.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf

from eltwise.core.dtypes import ElementType
from eltwise.kernels.flags import Flags
from eltwise.kernels.instructions import constant, of, suffix
from eltwise.kernels.lanes import LANES, Lanes
from eltwise.kernels.precision import DOUBLE
from eltwise.kernels.vectors import Vector, widened

UNIT = 64
"""The kernel takes only multiples of so many elements."""

BUCKETS = 66
"""Distances of 0, and of 1 to 64 binary digits; the last bucket takes what has no distance."""

TABLES = 4
"""So many tables count in turn, so that an increment seldom waits for the one before it."""

COUNTS = ("differing", "beyond", "nan", "both_nan", "zero_sign", "infinity", "abs_infinite", "rel_infinite")
"""What is counted of a block."""

FIELDS = (*COUNTS, "max_ulp", "max_abs", "max_rel", "sum_abs", "sum_rel")
"""The fields of a record, eight bytes each: integers, and from ``max_abs`` on float64."""

_RARE = COUNTS[2:]
"""Counts that change only where there are NaN, infinities or zeros."""

_BLOCK_BYTES = 1 << 14
"""Two such blocks fit into the smallest cache, from which unequal ones are read again."""

_PAIRS = LANES // 2


def block_elements(element_type: ElementType) -> int:
    """How many elements a block has."""
    return _BLOCK_BYTES // element_type.storage.itemsize


def differences_text(element_type: ElementType, has_mode: bool) -> str:
    """Write the LLVM module for an element type; its one function is ``kernel``."""
    kernel = _Kernel(element_type, has_mode)
    kernel.write()
    return kernel.code.kernel()


class _Kernel(Lanes):
    """Writes the kernel of one element type."""

    def __init__(self, element_type: ElementType, has_mode: bool) -> None:
        super().__init__(element_type)
        self.has_mode = has_mode
        works = of(LANES, self.precision.scalar)
        kinds = {"max_ulp": self.distances, "max_abs": works, "max_rel": works}
        self.sums = {name: kinds.get(name, of(LANES, "double")) for name in FIELDS} | dict.fromkeys(COUNTS, "i64")

    def write(self) -> None:
        """Write all of it: the arguments, then block after block."""
        let = self.code.let
        self.code.do(f"%pairs = alloca <{_PAIRS} x i32>, align 64")
        *addresses, total, atol, rtol, largest = map(self.code.argument, range(8))
        self.a, self.b, self.records, self.tables = map(self.code.pointer, addresses)
        self.total, self.atol, self.rtol = total, self._limit(atol), self._limit(rtol)
        near = largest if self.distance == "i64" else let(f"trunc i64 {largest} to i32")
        self.near = self.code.in_all_lanes(self.distance, near, LANES)
        self.code.in_default_mode(self._blocks, has_mode=self.has_mode)

    def _blocks(self) -> None:
        self.code.fold("%first", "%last", 1, (("i1", "false"),), lambda number, seen: [self._block(number, seen[0])])

    def _limit(self, bits: str) -> Vector:
        number = self.code.let(f"bitcast i64 {bits} to double")
        return Vector(self.code, LANES, self.code.in_all_lanes("double", number, LANES))

    def _block(self, number: str, was_unequal: str) -> str:
        """Measure a block, without looking for equal bits first where the one before it was unequal."""
        code, let, size = self.code, self.code.let, block_elements(self.type)
        start = let(f"mul i64 {number}, {size}")
        count = code.least(let(f"sub i64 {self.total}, {start}"), size)
        offset = let(f"mul i64 {start}, {self.bits // 8}")
        sources = [code.moved(one, offset) for one in (self.a, self.b)]
        bytes_ = let(f"mul i64 {count}, {self.bits // 8}")
        looked = let(f"select i1 {was_unequal}, i64 0, i64 {bytes_}")
        (mixed,) = code.fold("0", looked, 8 * self.bits, ((of(LANES, "i32"), "zeroinitializer"),), self._mixed(sources))
        some = let(f"call i32 @llvm.vector.reduce.or.v{LANES}i32({of(LANES, 'i32')} {mixed})")
        is_read = let(f"or i1 {was_unequal}, {let(f'icmp ne i32 {some}, 0')}")
        end = let(f"select i1 {is_read}, i64 {count}, i64 0")
        zeros = [(kind, "0" if kind == "i64" else "zeroinitializer") for kind in self.sums.values()]

        def lanes(index: str, values: list[str]) -> list[str]:
            return self._lanes(sources, index, dict(zip(self.sums, values, strict=True)))

        totals = dict(zip(self.sums, code.fold("0", end, LANES, zeros, lanes), strict=True))
        record = let(f"getelementptr [{len(FIELDS)} x i64], ptr {self.records}, i64 {number}")
        for field, name in enumerate(FIELDS):
            pointer = let(f"getelementptr i64, ptr {record}, i64 {field}")
            kind = "i64" if name in FIELDS[:-4] else "double"
            code.do(f"store {kind} {self._reduced(name, totals[name])}, ptr {pointer}, align 8")
        return let(f"icmp ne i64 {totals['differing']}, 0")

    def _mixed(self, sources: Sequence[str]) -> Callable[[str, list[str]], list[str]]:
        """Or together which bits differ; what is read is in the cache afterwards."""
        kind, let = of(LANES, "i32"), self.code.let

        def body(at: str, values: list[str]) -> list[str]:
            bits = values[0]
            for number in range(self.bits // 8):
                pointer = let(f"add i64 {at}, {64 * number}")
                a, b = (let(f"load {kind}, ptr {self.code.moved(one, pointer)}, align 1") for one in sources)
                bits = let(f"or {kind} {bits}, {let(f'xor {kind} {a}, {b}')}")
            return [bits]

        return body

    def _reduced(self, name: str, value: str) -> str:
        """The lanes of a sum as one number of eight bytes."""
        let, kind = self.code.let, self.sums[name]
        if kind == "i64":
            return value
        if name == "max_ulp":
            most = let(f"call {self.distance} @llvm.vector.reduce.umax.{suffix(LANES, self.distance)}({kind} {value})")
            return most if self.distance == "i64" else let(f"zext i32 {most} to i64")
        if name.startswith("sum"):
            return let(f"call double @llvm.vector.reduce.fadd.v{LANES}f64(double 0.0, {kind} {value})")
        scalar = self.precision.scalar
        most = let(f"call nnan {scalar} @llvm.vector.reduce.fmax.{suffix(LANES, scalar)}({kind} {value})")
        return most if self.precision is DOUBLE else let(f"fpext float {most} to double")

    def _lanes(self, sources: Sequence[str], index: str, before: dict[str, str]) -> list[str]:
        """The sums after 16 elements, which are looked at only if some of them differ."""
        let = self.code.let
        places = (let(f"getelementptr i{self.bits}, ptr {one}, i64 {index}") for one in sources)
        loaded = [let(f"load {self.raw}, ptr {pointer}, align 1") for pointer in places]
        unequal = Flags(self.code, LANES, let(f"icmp ne {self.raw} {loaded[0]}, {loaded[1]}"))
        values = [(self.sums[name], value) for name, value in before.items()]
        return self.code.choose(unequal.any(), values, lambda: self._unequal(loaded, unequal, before))

    def _unequal(self, loaded: Sequence[str], unequal: Flags, before: dict[str, str]) -> list[str]:
        """What 16 elements add, of which some differ; most have neither NaN nor infinity nor a zero among them."""
        a, b = map(self.value, loaded)
        distance, size = self.distance_of(loaded), abs(a)
        if self.is_float:
            gap = abs(a - b)
        else:
            gap = self.vector(self.code.let(f"uitofp {self.distances} {distance} to {a.type}"))
        ratio = gap / size
        special = unequal & ~ratio.flags("olt", inf)
        gap, ratio = gap.chosen(unequal, 0.0), ratio.chosen(unequal, 0.0)
        plain = {"measured": unequal.name, "alone": "zeroinitializer", "gap": gap.name, "ratio": ratio.name}
        plain |= {"finite_gap": gap.name, "finite_ratio": ratio.name} | {name: before[name] for name in _RARE}
        kinds = {"measured": unequal.type, "alone": unequal.type} | dict.fromkeys(_RARE, "i64")
        joined = self.code.choose(
            special.any(),
            [(kinds.get(name, gap.type), value) for name, value in plain.items()],
            lambda: list(self._rare(a, b, unequal, plain).values()),
        )
        measures = dict(zip(plain, joined, strict=True))
        new = self._added(measures, unequal, (a, b), distance, before)
        return [new[name] for name in before]

    def _rare(self, a: Vector, b: Vector, unequal: Flags, plain: Mapping[str, str]) -> dict[str, str]:
        """Where there are NaN, infinities or zeros: which elements are measured, and what is counted beside that."""
        measures, counted, measured = dict(plain), {}, unequal
        if self.is_float:
            has_nan, both_nan = a.flags("uno", b), a.flags("uno", a) & b.flags("uno", b)
            measured = unequal & ~has_nan
            counted["nan"] = has_nan & ~both_nan
            counted["both_nan"] = unequal & both_nan
            counted["zero_sign"] = unequal & a.flags("oeq", b)
            counted["infinity"] = (abs(a).flags("oeq", inf) | abs(b).flags("oeq", inf)) & measured
            measures |= {"measured": measured.name, "alone": counted["nan"].name}
        gap, ratio = self.vector(plain["gap"]).chosen(measured, 0.0), self.vector(plain["ratio"])
        # What is relative to an infinity is infinite, and what lies between zeros is 0.
        ratio = ratio.chosen(ratio.flags("ord", 0.0), gap)
        for name, value, count in (("gap", gap, "abs_infinite"), ("ratio", ratio, "rel_infinite")):
            is_finite = value.flags("olt", inf)
            counted[count] = ~is_finite
            measures |= {name: value.name, f"finite_{name}": value.chosen(is_finite, 0.0).name}
        return measures | {name: self.counted(plain[name], flags) for name, flags in counted.items()}

    def _added(
        self,
        measures: dict[str, str],
        unequal: Flags,
        pair: tuple[Vector, Vector],
        distance: str,
        before: dict[str, str],
    ) -> dict[str, str]:
        """The sums after these elements."""
        let, new = self.code.let, {name: measures[name] for name in _RARE}
        measured, alone = (Flags(self.code, LANES, measures[name]) for name in ("measured", "alone"))
        gap, ratio, *finite = (self.vector(measures[name]) for name in ("gap", "ratio", "finite_gap", "finite_ratio"))
        far = measured.choose(self.distances, distance, "zeroinitializer")
        self._histogram(far, measured)
        beyond = (~self._is_within(gap, pair, distance) & measured) | alone
        new |= {
            "differing": self.counted(before["differing"], unequal),
            "beyond": self.counted(before["beyond"], beyond),
        }
        most = (
            f"@llvm.umax.{suffix(LANES, self.distance)}({self.distances} {before['max_ulp']}, {self.distances} {far})"
        )
        new["max_ulp"] = let(f"call {self.distances} {most}")
        for name, value in (("max_abs", gap), ("max_rel", ratio)):
            largest = self.vector(before[name])
            new[name] = value.chosen(value.flags("ogt", largest), largest).name
        for name, value in zip(("sum_abs", "sum_rel"), finite, strict=True):
            new[name] = (Vector(self.code, LANES, before[name]) + self._wide(value)).name
        return new

    def _wide(self, value: Vector) -> Vector:
        return value if self.precision is DOUBLE else widened(value)

    def _is_within(self, gap: Vector, pair: tuple[Vector, Vector], distance: str) -> Flags:
        """Which elements are within the tolerance, in float64 whatever the type is."""
        a, b = map(self._wide, pair)
        gap = gap if self.precision is DOUBLE else abs(a - b)
        is_near = gap.flags("ole", self.atol + self.rtol * abs(a))
        is_next = Flags(self.code, LANES, self.code.let(f"icmp ule {self.distances} {distance}, {self.near}"))
        return (is_near | is_next) & gap.flags("olt", inf)

    def _histogram(self, far: str, measured: Flags) -> None:
        """Count the distances of lanes and of the lanes half a vector further in pairs, which halves the increments."""
        let, kind, half, integers = self.code.let, self.distances, of(_PAIRS, "i32"), of(LANES, "i32")
        zeros = let(f"call {kind} @llvm.ctlz.{suffix(LANES, self.distance)}({kind} {far}, i1 false)")
        digits = let(f"sub {kind} {constant(LANES, self.distance, int(self.distance[1:]))}, {zeros}")
        last = constant(LANES, self.distance, BUCKETS - 1)
        bucket = measured.choose(kind, digits, last)
        if self.distance == "i64":
            bucket = let(f"trunc {kind} {bucket} to {integers}")
        parts = []
        for start in (0, _PAIRS):
            lanes = range(start, start + _PAIRS)
            parts.append(self.code.shuffled(f"{integers} {bucket}, {integers} poison", lanes))
        row = let(f"mul {half} {parts[1]}, {constant(_PAIRS, 'i32', BUCKETS)}")
        self.code.do(f"store {half} {let(f'add {half} {row}, {parts[0]}')}, ptr %pairs, align 64")
        for pair in range(_PAIRS):
            one = let(f"load i32, ptr {let(f'getelementptr i32, ptr %pairs, i64 {pair}')}, align 4")
            table = let(f"getelementptr [{BUCKETS * BUCKETS} x i32], ptr {self.tables}, i64 {pair % TABLES}")
            pointer = let(f"getelementptr i32, ptr {table}, i64 {let(f'zext i32 {one} to i64')}")
            count = let(f"load i32, ptr {pointer}, align 4")
            self.code.do(f"store i32 {let(f'add i32 {count}, 1')}, ptr {pointer}, align 4")
