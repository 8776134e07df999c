"""The kernel that counts and measures differences of two arrays in one pass, as LLVM IR text. Pure.

It reads blocks of elements. Of a block whose bits are equal it writes only zeros; of another one, and of the block
behind it, it looks at 16 elements at a time, and at nothing but their bits where those are equal. ``FIELDS`` are what
it writes of each block. How far apart numbers are in units of the last place is counted by powers of two, in tables of
32-bit counters: one call of the kernel may see less than 2^32 elements.

``kernel(arguments, first, last)`` works on the blocks from ``first`` to before ``last``. ``arguments`` holds the
addresses of both arrays, of the records and of the tables, the number of elements (a multiple of ``UNIT``), and the
tolerance: the absolute and the relative one as float64, and the least distance that is too far.
"""

from __future__ import annotations

from collections.abc import Sequence

from eltwise.core.dtypes import BFLOAT16, FLOAT16, ElementType

LANES = 16
UNIT = 64
"""The kernel takes only multiples of so many elements."""

BUCKETS = 66
"""Distances of 0, and of 1 to 64 binary digits; the last bucket takes what has no distance."""

TABLES = 4
"""So many tables count in turn, so that an increment seldom waits for the one before it."""

_PAIRS = LANES // 2

COUNTS = ("differing", "beyond", "nan", "both_nan", "zero_sign", "infinity", "abs_infinite", "rel_infinite")
"""What is counted of a block."""

FIELDS = (*COUNTS, "max_ulp", "max_abs", "max_rel", "sum_abs", "sum_rel")
"""The fields of a record, eight bytes each: integers, and from ``max_abs`` on float64."""

_BLOCK_BYTES = 1 << 14
"""Two such blocks fit into the smallest cache, from which unequal ones are read again."""


def block_elements(element_type: ElementType) -> int:
    """How many elements a block has."""
    return _BLOCK_BYTES // element_type.storage.itemsize


class _Text:
    """Lines of LLVM IR, and fresh names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._last = 0

    def name(self) -> str:
        self._last += 1
        return f"%v{self._last}"

    def let(self, text: str) -> str:
        found = self.name()
        self.lines.append(f"  {found} = {text}")
        return found

    def do(self, *lines: str) -> None:
        self.lines.extend(line if line.endswith(":") else f"  {line}" for line in lines)


def _of(kind: str) -> str:
    return f"<{LANES} x {kind}>"


def _splat(value: str, kind: str) -> str:
    return f"<{', '.join([f'{kind} {value}'] * LANES)}>"


def differences_text(element_type: ElementType, has_mode: bool) -> str:
    """Write the LLVM module for an element type; its one function is ``kernel``."""
    return "\n".join(
        [
            "define void @kernel(ptr readonly %arguments, i64 %first, i64 %last) nounwind {",
            *_Kernel(element_type, has_mode).lines(),
            "}",
            *_declarations(has_mode),
        ]
    )


def _declarations(has_mode: bool) -> list[str]:
    found = ["declare i16 @llvm.ctpop.i16(i16)", "declare i64 @llvm.umin.i64(i64, i64)"]
    for bits in (8, 16, 32, 64):
        kind = _of(f"i{bits}")
        found += [
            f"declare {kind} @llvm.{name}.v{LANES}i{bits}({kind}, {kind})" for name in ("umax", "smax", "smin", "umin")
        ]
        found.append(f"declare i{bits} @llvm.vector.reduce.umax.v{LANES}i{bits}({kind})")
        found.append(f"declare {kind} @llvm.ctlz.v{LANES}i{bits}({kind}, i1)")
    double = _of("double")
    for name, short in _SHORT.items():
        found.append(f"declare {_of(name)} @llvm.fabs.v{LANES}{short}({_of(name)})")
        found.append(f"declare {name} @llvm.vector.reduce.fmax.v{LANES}{short}({_of(name)})")
    found += [
        f"declare double @llvm.vector.reduce.fadd.v{LANES}f64(double, {double})",
        f"declare i32 @llvm.vector.reduce.or.v{LANES}i32({_of('i32')})",
    ]
    return found + [f"declare void @llvm.x86.sse.{name}(ptr)" for name in ("stmxcsr", "ldmxcsr") if has_mode]


_RARE = tuple(name for name in COUNTS if name not in ("differing", "beyond"))
_SHORT = {"float": "f32", "double": "f64"}


class _Kernel:
    """Writes the kernel of one element type."""

    def __init__(self, element_type: ElementType, has_mode: bool) -> None:
        self.type, self.text, self.has_mode = element_type, _Text(), has_mode
        self.bits = max(element_type.bits, 8)
        self.is_float = element_type.kind == "float"
        self.distance = "i64" if self.bits == 64 else "i32"
        self.work = "float" if self.is_float and self.bits < 64 else "double"
        self.infinity = _splat("0x7FF0000000000000", self.work)
        kinds = {"max_ulp": _of(self.distance), "max_abs": _of(self.work), "max_rel": _of(self.work)}
        kinds |= dict.fromkeys(("sum_abs", "sum_rel"), _of("double"))
        self.sums: dict[str, str] = {**dict.fromkeys(COUNTS, "i64"), **kinds}

    def lines(self) -> list[str]:
        """All of it."""
        text = self.text
        text.do("entry:", f"%pairs = alloca <{_PAIRS} x i32>, align 64")
        argument = [self._argument(number) for number in range(8)]
        self.a, self.b, self.records, self.tables = (text.let(f"inttoptr i64 {one} to ptr") for one in argument[:4])
        self.total = argument[4]
        self.atol, self.rtol = map(self._limit, argument[5:7])
        too_far = argument[7] if self.distance == "i64" else text.let(f"trunc i64 {argument[7]} to i32")
        self.too_far = self._spread(too_far, self.distance)
        if self.has_mode:
            text.do("%saved = alloca i32, align 4", "%wanted = alloca i32, align 4")
            text.do("call void @llvm.x86.sse.stmxcsr(ptr %saved)", "store i32 8064, ptr %wanted, align 4")
            text.do("call void @llvm.x86.sse.ldmxcsr(ptr %wanted)")
        text.do("br label %blocks")
        self._blocks()
        text.do("done:")
        if self.has_mode:
            text.do("call void @llvm.x86.sse.ldmxcsr(ptr %saved)")
        text.do("ret void")
        return text.lines

    def _argument(self, number: int) -> str:
        place = self.text.let(f"getelementptr i64, ptr %arguments, i64 {number}")
        return self.text.let(f"load i64, ptr {place}, align 8")

    def _spread(self, value: str, kind: str) -> str:
        one = self.text.let(f"insertelement {_of(kind)} poison, {kind} {value}, i64 0")
        return self.text.let(f"shufflevector {_of(kind)} {one}, {_of(kind)} poison, <{LANES} x i32> zeroinitializer")

    def _limit(self, bits: str) -> str:
        value = self.text.let(f"bitcast i64 {bits} to double")
        if self.work == "float":
            value = self.text.let(f"fptrunc double {value} to float")
        return self._spread(value, self.work)

    def _blocks(self) -> None:
        text, size = self.text, block_elements(self.type)
        text.do("blocks:", "%block = phi i64 [%first, %entry], [%nextblock, %written]")
        text.do("%isdense = phi i1 [false, %entry], [%wasunequal, %written]")
        text.do("%moreblocks = icmp slt i64 %block, %last", "br i1 %moreblocks, label %begin, label %done", "begin:")
        start = text.let(f"mul i64 %block, {size}")
        left = text.let(f"sub i64 {self.total}, {start}")
        text.do(f"%count = call i64 @llvm.umin.i64(i64 {left}, i64 {size})")
        offset = text.let(f"mul i64 {start}, {self.bits // 8}")
        text.do(f"%froma = getelementptr i8, ptr {self.a}, i64 {offset}")
        text.do(f"%fromb = getelementptr i8, ptr {self.b}, i64 {offset}")
        text.do(f"%bytes = mul i64 %count, {self.bits // 8}", "br i1 %isdense, label %loop, label %same")
        self._equality()
        self._elements()
        self._written(start)

    def _equality(self) -> None:
        """Or together which bits differ in the block; what it reads is in the cache afterwards."""
        text, kind = self.text, _of("i32")
        vectors = self.bits // 8
        text.do("same:", "%at = phi i64 [0, %begin], [%nextat, %same]")
        text.do(f"%mixed = phi {kind} [zeroinitializer, %begin], [%nextmixed, %same]")
        found = "%mixed"
        for number in range(vectors):
            place = text.let(f"add i64 %at, {64 * number}")
            parts = []
            for source in ("%froma", "%fromb"):
                address = text.let(f"getelementptr i8, ptr {source}, i64 {place}")
                parts.append(text.let(f"load {kind}, ptr {address}, align 1"))
            unequal = text.let(f"xor {kind} {parts[0]}, {parts[1]}")
            found = text.let(f"or {kind} {found}, {unequal}")
        text.do(f"%nextmixed = or {kind} {found}, zeroinitializer", f"%nextat = add i64 %at, {64 * vectors}")
        text.do("%moresame = icmp slt i64 %nextat, %bytes", "br i1 %moresame, label %same, label %decide", "decide:")
        text.do(f"%any = call i32 @llvm.vector.reduce.or.v{LANES}i32({kind} %nextmixed)")
        text.do("%isequal = icmp eq i32 %any, 0", "br i1 %isequal, label %written, label %loop")

    def _elements(self) -> None:
        text, raw = self.text, _of(f"i{self.bits}")
        text.do("loop:", "%index = phi i64 [0, %decide], [0, %begin], [%nextindex, %latch]")
        for name, kind in self.sums.items():
            zero = "0" if kind == "i64" else "zeroinitializer"
            text.do(f"%{name} = phi {kind} [{zero}, %decide], [{zero}, %begin], [%{name}.next, %latch]")
        loaded = []
        for source in ("%froma", "%fromb"):
            address = text.let(f"getelementptr i{self.bits}, ptr {source}, i64 %index")
            loaded.append(text.let(f"load {raw}, ptr {address}, align 1"))
        text.do(f"%unequal = icmp ne {raw} {loaded[0]}, {loaded[1]}")
        mask = text.let(f"bitcast {_of('i1')} %unequal to i16")
        text.do(f"%isskipped = icmp eq i16 {mask}, 0", "br i1 %isskipped, label %latch, label %body", "body:")
        new = self._body(loaded)
        text.do("br label %latch", "latch:")
        for name, kind in self.sums.items():
            text.do(f"%{name}.next = phi {kind} [%{name}, %loop], [{new[name]}, %add]")
        text.do(f"%nextindex = add i64 %index, {LANES}", "%more = icmp slt i64 %nextindex, %count")
        text.do("br i1 %more, label %loop, label %sum", "sum:")

    def _body(self, loaded: Sequence[str]) -> dict[str, str]:
        """What 16 elements add, of which some differ; most have neither NaN nor infinity nor a zero among them."""
        text, kind, flag = self.text, _of(self.work), _of("i1")
        a, b = (self._value(one) for one in loaded)
        distance = self._float_distance(loaded) if self.is_float else self._integer_distance(loaded)
        size = self._absolute(a)
        gap = (
            self._absolute(text.let(f"fsub {kind} {a}, {b}"))
            if self.is_float
            else text.let(f"uitofp {_of(self.distance)} {distance} to {kind}")
        )
        ratio = text.let(f"fdiv {kind} {gap}, {size}")
        is_plain = text.let(f"fcmp olt {kind} {ratio}, {self.infinity}")
        text.do(f"%special = and {flag} %unequal, {self._not(is_plain)}")
        text.do(f"%gap = select {flag} %unequal, {kind} {gap}, {kind} zeroinitializer")
        text.do(f"%ratio = select {flag} %unequal, {kind} {ratio}, {kind} zeroinitializer")
        mask = text.let(f"bitcast {flag} %special to i16")
        text.do(f"%isplain = icmp eq i16 {mask}, 0", "br i1 %isplain, label %add, label %rare", "rare:")
        rare = self._rare(a, b, size)
        text.do("br label %add", "add:")
        plain = dict.fromkeys(_RARE, "") | {"measured": "%unequal", "gap": "%gap", "finite_gap": "%gap"}
        plain |= {"ratio": "%ratio", "finite_ratio": "%ratio"}
        joined = {}
        for name, value in rare.items():
            of = kind if "gap" in name or "ratio" in name else flag if name in ("measured", "alone") else "i64"
            before = plain.get(name) or ("zeroinitializer" if name == "alone" else f"%{name}")
            joined[name] = text.let(f"phi {of} [{before}, %body], [{value}, %rare]")
        return self._added(joined, size, distance)

    def _rare(self, a: str, b: str, size: str) -> dict[str, str]:
        """Where there are NaN, infinities or zeros: which elements are measured, and what is counted beside that."""
        text, kind, flag = self.text, _of(self.work), _of("i1")
        measured, alone, counted = "%unequal", "zeroinitializer", {}
        if self.is_float:
            ordered = text.let(f"fcmp ord {kind} {a}, {b}")
            measured = text.let(f"and {flag} %unequal, {ordered}")
            nans = [text.let(f"fcmp uno {kind} {one}, {one}") for one in (a, b)]
            alone = text.let(f"xor {flag} {nans[0]}, {nans[1]}")
            counted["nan"] = alone
            counted["both_nan"] = text.let(f"and {flag} %unequal, {text.let(f'and {flag} {nans[0]}, {nans[1]}')}")
            counted["zero_sign"] = text.let(f"and {flag} %unequal, {text.let(f'fcmp oeq {kind} {a}, {b}')}")
            infinite = [text.let(f"fcmp oeq {kind} {one}, {self.infinity}") for one in (size, self._absolute(b))]
            either = text.let(f"or {flag} {infinite[0]}, {infinite[1]}")
            counted["infinity"] = text.let(f"and {flag} {either}, {measured}")
        gap = text.let(f"select {flag} {measured}, {kind} %gap, {kind} zeroinitializer")
        is_number = text.let(f"fcmp ord {kind} %ratio, zeroinitializer")
        ratio = text.let(f"select {flag} {is_number}, {kind} %ratio, {kind} {gap}")
        found = {"measured": measured, "alone": alone, "gap": gap, "ratio": ratio}
        for name, value in (("gap", gap), ("ratio", ratio)):
            is_finite = text.let(f"fcmp olt {kind} {value}, {self.infinity}")
            counted["abs_infinite" if name == "gap" else "rel_infinite"] = self._not(is_finite)
            found[f"finite_{name}"] = text.let(f"select {flag} {is_finite}, {kind} {value}, {kind} zeroinitializer")
        return found | {name: self._count(name, counted.get(name, "")) for name in _RARE}

    def _added(self, found: dict[str, str], size: str, distance: str) -> dict[str, str]:
        """The sums after these elements."""
        text, work, flag, kind = self.text, _of(self.work), _of("i1"), _of(self.distance)
        far = text.let(f"select {flag} {found['measured']}, {kind} {distance}, {kind} zeroinitializer")
        self._histogram(far, found["measured"])
        beyond = self._beyond(found, size, distance)
        new = {name: found[name] for name in _RARE}
        new |= {"differing": self._count("differing", "%unequal"), "beyond": self._count("beyond", beyond)}
        new["max_ulp"] = text.let(f"call {kind} @llvm.umax.v{LANES}{self.distance}({kind} %max_ulp, {kind} {far})")
        for name, value in (("max_abs", found["gap"]), ("max_rel", found["ratio"])):
            larger = text.let(f"fcmp ogt {work} {value}, %{name}")
            new[name] = text.let(f"select {flag} {larger}, {work} {value}, {work} %{name}")
        for name, value in (("sum_abs", found["finite_gap"]), ("sum_rel", found["finite_ratio"])):
            wide = value if self.work == "double" else text.let(f"fpext {work} {value} to {_of('double')}")
            new[name] = text.let(f"fadd {_of('double')} %{name}, {wide}")
        return new

    def _absolute(self, value: str) -> str:
        kind = _of(self.work)
        return self.text.let(f"call {kind} @llvm.fabs.v{LANES}{_SHORT[self.work]}({kind} {value})")

    def _not(self, mask: str) -> str:
        return self.text.let(f"xor {_of('i1')} {mask}, {_splat('true', 'i1')}")

    def _value(self, loaded: str) -> str:
        text, raw, work = self.text, _of(f"i{self.bits}"), _of(self.work)
        if self.type is BFLOAT16:
            wide = text.let(f"zext {raw} {loaded} to {_of('i32')}")
            loaded, raw = text.let(f"shl {_of('i32')} {wide}, {_splat('16', 'i32')}"), _of("i32")
        if not self.is_float:
            return text.let(f"{'sitofp' if self.type.kind == 'signed' else 'uitofp'} {raw} {loaded} to {work}")
        if self.type is FLOAT16:
            half = text.let(f"bitcast {raw} {loaded} to {_of('half')}")
            return text.let(f"fpext {_of('half')} {half} to {work}")
        return text.let(f"bitcast {raw} {loaded} to {work}")

    def _float_distance(self, loaded: Sequence[str]) -> str:
        """How many numbers lie between: the patterns without sign, negative where the sign is, are in order."""
        text, raw, last = self.text, _of(f"i{self.bits}"), self.bits - 1
        keys = []
        for one in loaded:
            size = text.let(f"and {raw} {one}, {_splat(str((1 << last) - 1), f'i{self.bits}')}")
            sign = text.let(f"ashr {raw} {one}, {_splat(str(last), f'i{self.bits}')}")
            key = text.let(f"sub {raw} {text.let(f'xor {raw} {size}, {sign}')}, {sign}")
            keys.append(key if self.bits >= 32 else text.let(f"sext {raw} {key} to {_of('i32')}"))
        return self._gap(keys, "s", _of(self.distance), self.distance)

    def _integer_distance(self, loaded: Sequence[str]) -> str:
        text, raw = self.text, f"i{self.bits}"
        gap = self._gap(loaded, "s" if self.type.kind == "signed" else "u", _of(raw), raw)
        return gap if self.bits >= 32 else text.let(f"zext {_of(raw)} {gap} to {_of('i32')}")

    def _gap(self, values: Sequence[str], sign: str, kind: str, scalar: str) -> str:
        arguments = f"({kind} {values[0]}, {kind} {values[1]})"
        most, least = (
            self.text.let(f"call {kind} @llvm.{sign}{end}.v{LANES}{scalar}{arguments}") for end in ("max", "min")
        )
        return self.text.let(f"sub {kind} {most}, {least}")

    def _beyond(self, found: dict[str, str], size: str, distance: str) -> str:
        text, kind, flag = self.text, _of(self.work), _of("i1")
        allowed = text.let(f"fadd {kind} {self.atol}, {text.let(f'fmul {kind} {self.rtol}, {size}')}")
        is_near = text.let(f"fcmp ole {kind} {found['gap']}, {allowed}")
        is_finite = text.let(f"fcmp olt {kind} {found['gap']}, {self.infinity}")
        is_near = text.let(f"and {flag} {is_near}, {is_finite}")
        is_next = text.let(f"icmp ult {_of(self.distance)} {distance}, {self.too_far}")
        outside = self._not(text.let(f"or {flag} {is_near}, {is_next}"))
        outside = text.let(f"and {flag} {outside}, {found['measured']}")
        return text.let(f"or {flag} {outside}, {found['alone']}")

    def _count(self, name: str, mask: str) -> str:
        if not mask:
            return f"%{name}"
        bits = self.text.let(f"bitcast {_of('i1')} {mask} to i16")
        ones = self.text.let(f"call i16 @llvm.ctpop.i16(i16 {bits})")
        return self.text.let(f"add i64 %{name}, {self.text.let(f'zext i16 {ones} to i64')}")

    def _histogram(self, far: str, measured: str) -> None:
        """Count the distances of lanes and of the lanes half a vector further in pairs, which halves the increments."""
        text, kind = self.text, _of(self.distance)
        zeros = text.let(f"call {kind} @llvm.ctlz.v{LANES}{self.distance}({kind} {far}, i1 false)")
        digits = text.let(f"sub {kind} {_splat(self.distance[1:], self.distance)}, {zeros}")
        last = _splat(str(BUCKETS - 1), self.distance)
        bucket = text.let(f"select {_of('i1')} {measured}, {kind} {digits}, {kind} {last}")
        if self.distance == "i64":
            bucket = text.let(f"trunc {kind} {bucket} to {_of('i32')}")
        half = f"<{_PAIRS} x i32>"
        parts = []
        for start in (0, _PAIRS):
            lanes = ", ".join(f"i32 {lane}" for lane in range(start, start + _PAIRS))
            parts.append(
                text.let(f"shufflevector {_of('i32')} {bucket}, {_of('i32')} poison, <{_PAIRS} x i32> <{lanes}>")
            )
        width = f"<{', '.join([f'i32 {BUCKETS}'] * _PAIRS)}>"
        index = text.let(f"add {half} {text.let(f'mul {half} {parts[1]}, {width}')}, {parts[0]}")
        text.do(f"store {half} {index}, ptr %pairs, align 64")
        for pair in range(_PAIRS):
            place = text.let(f"getelementptr i32, ptr %pairs, i64 {pair}")
            one = text.let(f"load i32, ptr {place}, align 4")
            wide = text.let(f"zext i32 {one} to i64")
            table = text.let(f"getelementptr [{BUCKETS * BUCKETS} x i32], ptr {self.tables}, i64 {pair % TABLES}")
            place = text.let(f"getelementptr i32, ptr {table}, i64 {wide}")
            before = text.let(f"load i32, ptr {place}, align 4")
            text.do(f"store i32 {text.let(f'add i32 {before}, 1')}, ptr {place}, align 4")

    def _written(self, _start: str) -> None:
        """Reduce the lanes and write the record; a block that is equal has zeros."""
        text, double, work = self.text, _of("double"), _of(self.work)
        total: dict[str, str] = {name: f"%{name}.next" for name in COUNTS}
        kind = _of(self.distance)
        most = text.let(f"call {self.distance} @llvm.vector.reduce.umax.v{LANES}{self.distance}({kind} %max_ulp.next)")
        total["max_ulp"] = most if self.distance == "i64" else text.let(f"zext i32 {most} to i64")
        for name in ("max_abs", "max_rel"):
            of = f"@llvm.vector.reduce.fmax.v{LANES}{_SHORT[self.work]}"
            most = text.let(f"call nnan {self.work} {of}({work} %{name}.next)")
            total[name] = most if self.work == "double" else text.let(f"fpext float {most} to double")
        for name in ("sum_abs", "sum_rel"):
            total[name] = text.let(
                f"call double @llvm.vector.reduce.fadd.v{LANES}f64(double 0.0, {double} %{name}.next)"
            )
        text.do("br label %written", "written:")
        values = {}
        for name in FIELDS:
            kind = "double" if name in FIELDS[-4:] else "i64"
            zero = "0.0" if kind == "double" else "0"
            values[name] = text.let(f"phi {kind} [{zero}, %decide], [{total[name]}, %sum]")
        record = text.let(f"getelementptr [{len(FIELDS)} x i64], ptr {self.records}, i64 %block")
        for number, name in enumerate(FIELDS):
            place = text.let(f"getelementptr i64, ptr {record}, i64 {number}")
            text.do(f"store {'double' if name in FIELDS[-4:] else 'i64'} {values[name]}, ptr {place}, align 8")
        text.do(f"%wasunequal = icmp ne i64 {values['differing']}, 0")
        text.do("%nextblock = add i64 %block, 1", "br label %blocks")
