; Numbers of 192 digits for elements that float64 cannot decide: m * 2^e as {i64, i256}, 2^191 <= |m| < 2^192, or m = 0.
; Every result is rounded to odd, which keeps it on its side of every number of fewer digits.

define internal {i64, i256} @soft.add(i64 %ea, i256 %ma, i64 %eb, i256 %mb) noinline {
  %first = icmp sge i64 %ea, %eb
  %e1 = select i1 %first, i64 %ea, i64 %eb
  %e2 = select i1 %first, i64 %eb, i64 %ea
  %m1 = select i1 %first, i256 %ma, i256 %mb
  %m2 = select i1 %first, i256 %mb, i256 %ma
  %distance = sub i64 %e1, %e2
  %least = call i64 @llvm.umin.i64(i64 %distance, i64 255)
  %shift = zext i64 %least to i256
  %upper = shl i256 %m1, 60
  %lower = shl i256 %m2, 60
  %aligned = ashr i256 %lower, %shift
  %back = shl i256 %aligned, %shift
  %lost = icmp ne i256 %back, %lower
  %odd = zext i1 %lost to i256
  %sticky = or i256 %aligned, %odd
  %sum = add i256 %upper, %sticky
  %size = call i256 @llvm.abs.i256(i256 %sum, i1 false)
  %zeros = call i256 @llvm.ctlz.i256(i256 %size, i1 false)
  %most = call i256 @llvm.umin.i256(i256 %zeros, i256 255)
  %normal = shl i256 %size, %most
  %digits = lshr i256 %normal, 64
  %rest = trunc i256 %normal to i64
  %inexact = icmp ne i64 %rest, 0
  %last = zext i1 %inexact to i256
  %rounded = or i256 %digits, %last
  %negated = sub i256 0, %rounded
  %negative = icmp slt i256 %sum, 0
  %m = select i1 %negative, i256 %negated, i256 %rounded
  %count = trunc i256 %zeros to i64
  %up = add i64 %e1, 4
  %down = sub i64 %up, %count
  %zero = icmp eq i256 %sum, 0
  %e = select i1 %zero, i64 -1099511627776, i64 %down
  %one = insertvalue {i64, i256} poison, i64 %e, 0
  %both = insertvalue {i64, i256} %one, i256 %m, 1
  ret {i64, i256} %both
}

define internal {i64, i256} @soft.multiply(i64 %ea, i256 %ma, i64 %eb, i256 %mb) noinline {
  %a = call i256 @llvm.abs.i256(i256 %ma, i1 false)
  %b = call i256 @llvm.abs.i256(i256 %mb, i1 false)
  %wide.a = zext i256 %a to i512
  %wide.b = zext i256 %b to i512
  %product = mul i512 %wide.a, %wide.b
  %upper = lshr i512 %product, 383
  %is.long = trunc i512 %upper to i1
  %twice = shl i512 %product, 1
  %normal = select i1 %is.long, i512 %product, i512 %twice
  %shifted = lshr i512 %normal, 192
  %digits = trunc i512 %shifted to i256
  %rest = trunc i512 %normal to i192
  %inexact = icmp ne i192 %rest, 0
  %odd = zext i1 %inexact to i256
  %rounded = or i256 %digits, %odd
  %signs = xor i256 %ma, %mb
  %negative = icmp slt i256 %signs, 0
  %negated = sub i256 0, %rounded
  %m = select i1 %negative, i256 %negated, i256 %rounded
  %sum = add i64 %ea, %eb
  %more = add i64 %sum, 191
  %length = zext i1 %is.long to i64
  %exponent = add i64 %more, %length
  %zero = icmp eq i256 %rounded, 0
  %e = select i1 %zero, i64 -1099511627776, i64 %exponent
  %one = insertvalue {i64, i256} poison, i64 %e, 0
  %both = insertvalue {i64, i256} %one, i256 %m, 1
  ret {i64, i256} %both
}

define internal {i64, i256} @soft.divide(i64 %ea, i256 %ma, i64 %eb, i256 %mb) noinline {
entry:
  %a = call i256 @llvm.abs.i256(i256 %ma, i1 false)
  %b = call i256 @llvm.abs.i256(i256 %mb, i1 false)
  br label %digit
digit:
  %index = phi i64 [0, %entry], [%next, %digit]
  %rest = phi i256 [%a, %entry], [%doubled, %digit]
  %quotient = phi i256 [0, %entry], [%longer, %digit]
  %fits = icmp uge i256 %rest, %b
  %less = sub i256 %rest, %b
  %left = select i1 %fits, i256 %less, i256 %rest
  %doubled = shl i256 %left, 1
  %shifted = shl i256 %quotient, 1
  %bit = zext i1 %fits to i256
  %longer = or i256 %shifted, %bit
  %next = add i64 %index, 1
  %more = icmp ult i64 %next, 194
  br i1 %more, label %digit, label %done
done:
  %inexact = icmp ne i256 %left, 0
  %odd = zext i1 %inexact to i256
  %rounded = or i256 %longer, %odd
  %signs = xor i256 %ma, %mb
  %negative = icmp slt i256 %signs, 0
  %negated = sub i256 0, %rounded
  %m = select i1 %negative, i256 %negated, i256 %rounded
  %difference = sub i64 %ea, %eb
  %e = sub i64 %difference, 193
  %result = call {i64, i256} @soft.add(i64 %e, i256 %m, i64 -1099511627776, i256 0)
  ret {i64, i256} %result
}

define internal {i64, i256} @soft.polynomial(i64 %ex, i256 %mx, ptr %table, i64 %count) noinline {
entry:
  br label %term
term:
  %index = phi i64 [%count, %entry], [%before, %term]
  %e = phi i64 [-1099511627776, %entry], [%e.next, %term]
  %m = phi i256 [0, %entry], [%m.next, %term]
  %before = sub i64 %index, 1
  %coefficient = getelementptr [5 x i64], ptr %table, i64 %before
  %ec = load i64, ptr %coefficient, align 8
  %digits = getelementptr i64, ptr %coefficient, i64 1
  %mc = load i256, ptr %digits, align 8
  %product = call {i64, i256} @soft.multiply(i64 %e, i256 %m, i64 %ex, i256 %mx)
  %ep = extractvalue {i64, i256} %product, 0
  %mp = extractvalue {i64, i256} %product, 1
  %sum = call {i64, i256} @soft.add(i64 %ep, i256 %mp, i64 %ec, i256 %mc)
  %e.next = extractvalue {i64, i256} %sum, 0
  %m.next = extractvalue {i64, i256} %sum, 1
  %more = icmp ne i64 %before, 0
  br i1 %more, label %term, label %done
done:
  ret {i64, i256} %sum
}

define internal {i64, i256} @soft.from_double(double %x) noinline {
  %bits = bitcast double %x to i64
  %moved = lshr i64 %bits, 52
  %field = and i64 %moved, 2047
  %fraction = and i64 %bits, 4503599627370495
  %normal = icmp ne i64 %field, 0
  %whole = or i64 %fraction, 4503599627370496
  %size = select i1 %normal, i64 %whole, i64 %fraction
  %unit = call i64 @llvm.umax.i64(i64 %field, i64 1)
  %e = sub i64 %unit, 1075
  %negative = icmp slt i64 %bits, 0
  %negated = sub i64 0, %size
  %signed = select i1 %negative, i64 %negated, i64 %size
  %m = sext i64 %signed to i256
  %result = call {i64, i256} @soft.add(i64 %e, i256 %m, i64 -1099511627776, i256 0)
  ret {i64, i256} %result
}

define internal double @soft.scaled(double %x, i64 %e) noinline {
  %below = call i64 @llvm.smax.i64(i64 %e, i64 -1400)
  %exponent = call i64 @llvm.smin.i64(i64 %below, i64 1100)
  %first = ashr i64 %exponent, 1
  %second = sub i64 %exponent, %first
  %field.1 = add i64 %first, 1023
  %field.2 = add i64 %second, 1023
  %bits.1 = shl i64 %field.1, 52
  %bits.2 = shl i64 %field.2, 52
  %power.1 = bitcast i64 %bits.1 to double
  %power.2 = bitcast i64 %bits.2 to double
  %once = fmul double %x, %power.1
  %twice = fmul double %once, %power.2
  ret double %twice
}

define internal double @soft.to_double(i64 %e, i256 %m) noinline {
  %shifted = ashr i256 %m, 130
  %digits = trunc i256 %shifted to i64
  %x = sitofp i64 %digits to double
  %exponent = add i64 %e, 130
  %result = call double @soft.scaled(double %x, i64 %exponent)
  ret double %result
}

; To nearest, ties to even, with at most so many digits and no digit below 2^lowest.
define internal double @soft.rounded(i64 %e, i256 %m, i64 %precision, i64 %lowest) noinline {
  %size = call i256 @llvm.abs.i256(i256 %m, i1 false)
  %above = add i64 %e, 192
  %normal = sub i64 %above, %precision
  %last = call i64 @llvm.smax.i64(i64 %normal, i64 %lowest)
  %distance = sub i64 %last, %e
  %kept = sub i64 %distance, 2
  %most = call i64 @llvm.smin.i64(i64 %kept, i64 255)
  %shift = zext i64 %most to i256
  %shifted = lshr i256 %size, %shift
  %back = shl i256 %shifted, %shift
  %inexact = icmp ne i256 %back, %size
  %digits = trunc i256 %shifted to i64
  %sticky = zext i1 %inexact to i64
  %exact = or i64 %digits, %sticky
  %unit = lshr i64 %exact, 2
  %odd = and i64 %unit, 1
  %bias = add i64 %odd, 1
  %biased = add i64 %exact, %bias
  %whole = lshr i64 %biased, 2
  %x = uitofp i64 %whole to double
  %scaled = call double @soft.scaled(double %x, i64 %last)
  %bits = bitcast double %scaled to i64
  %negative = icmp slt i256 %m, 0
  %sign = select i1 %negative, i64 -9223372036854775808, i64 0
  %signed = or i64 %bits, %sign
  %result = bitcast i64 %signed to double
  ret double %result
}

; What is left of |x| beyond a multiple of pi / 2, divided by that, and the multiple modulo 4. The table holds 2 / pi times
; 2^%count as a number whose lowest byte comes first.
define internal {i64, i256, i64} @soft.turned(double %x, ptr %table, i64 %count) noinline {
  %bits = bitcast double %x to i64
  %moved = lshr i64 %bits, 52
  %field = and i64 %moved, 2047
  %fraction = and i64 %bits, 4503599627370495
  %whole = or i64 %fraction, 4503599627370496
  %above = sub i64 %count, %field
  %skipped = add i64 %above, 819
  %byte = lshr i64 %skipped, 3
  %bit = and i64 %skipped, 7
  %pointer = getelementptr i8, ptr %table, i64 %byte
  %window = load i512, ptr %pointer, align 1
  %shift = zext i64 %bit to i512
  %factor = lshr i512 %window, %shift
  %m = zext i64 %whole to i512
  %product = mul i512 %factor, %m
  %turns = lshr i512 %product, 255
  %lowest = trunc i512 %turns to i64
  %rounded = add i64 %lowest, 1
  %half = lshr i64 %rounded, 1
  %quadrant = and i64 %half, 3
  %rest = trunc i512 %product to i256
  %digits = ashr i256 %rest, 61
  %part = call {i64, i256} @soft.add(i64 -195, i256 %digits, i64 -1099511627776, i256 0)
  %e = extractvalue {i64, i256} %part, 0
  %d = extractvalue {i64, i256} %part, 1
  %one = insertvalue {i64, i256, i64} poison, i64 %e, 0
  %two = insertvalue {i64, i256, i64} %one, i256 %d, 1
  %three = insertvalue {i64, i256, i64} %two, i64 %quadrant, 2
  ret {i64, i256, i64} %three
}

; x + (1/2) / (x + (2/2) / (x + ... (%count / 2) / x))
define internal {i64, i256} @soft.continued(i64 %ex, i256 %mx, i64 %count) noinline {
entry:
  br label %term
term:
  %index = phi i64 [%count, %entry], [%before, %term]
  %e = phi i64 [%ex, %entry], [%e.next, %term]
  %m = phi i256 [%mx, %entry], [%m.next, %term]
  %number = sext i64 %index to i256
  %half = call {i64, i256} @soft.add(i64 -1, i256 %number, i64 -1099511627776, i256 0)
  %eh = extractvalue {i64, i256} %half, 0
  %mh = extractvalue {i64, i256} %half, 1
  %quotient = call {i64, i256} @soft.divide(i64 %eh, i256 %mh, i64 %e, i256 %m)
  %eq = extractvalue {i64, i256} %quotient, 0
  %mq = extractvalue {i64, i256} %quotient, 1
  %sum = call {i64, i256} @soft.add(i64 %ex, i256 %mx, i64 %eq, i256 %mq)
  %e.next = extractvalue {i64, i256} %sum, 0
  %m.next = extractvalue {i64, i256} %sum, 1
  %before = sub i64 %index, 1
  %more = icmp ne i64 %before, 0
  br i1 %more, label %term, label %done
done:
  ret {i64, i256} %sum
}
