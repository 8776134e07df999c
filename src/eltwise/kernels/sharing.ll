; The functions by which threads share work: see sharing.py, which replaces the names between dollar signs.
define void @kernel(ptr %pool, ptr %pieces, i64 %number) nounwind {
entry:
  %done = getelementptr i8, ptr %pool, i64 $at_done$
  %busy = getelementptr i8, ptr %pool, i64 $at_busy$
  %published = getelementptr i8, ptr %pool, i64 $at_pieces$
  %waiting = getelementptr i8, ptr %pool, i64 $at_waiting$
  %debt_place = getelementptr i8, ptr %pool, i64 $at_debt$
  %spins_place = getelementptr i8, ptr %pool, i64 $at_spins$
  %ends_place = getelementptr i8, ptr %pool, i64 $at_ends$
  %acquire_place = getelementptr i8, ptr %pool, i64 $at_acquire$
  %finished_place = getelementptr i8, ptr %pool, i64 $at_finished$
  %processor_place = getelementptr i8, ptr %pool, i64 $at_processor$
  %states = getelementptr i8, ptr %pool, i64 $at_states$
  %acquire = load ptr, ptr %acquire_place, align 8
  %finished = load ptr, ptr %finished_place, align 8
  %is_worker = icmp eq ptr %pieces, null
  br i1 %is_worker, label %work, label %share

share:
  %debt = load atomic i64, ptr %debt_place monotonic, align 8
  %is_in_debt = icmp sgt i64 %debt, 0
  br i1 %is_in_debt, label %rest, label %try

; Pay the debt by computing alone, which costs about half of the time that it takes; and share what is left of a call
; from which more is won than the debt.
rest:
  %rest_start = call i64 @ticks()
  br label %rest_piece

rest_piece:
  %resting = phi i64 [ 0, %rest ], [ %rested, %rest_on ]
  call void @compute_piece(ptr %pieces, i64 %resting)
  %rested = add i64 %resting, 1
  %rest_now = call i64 @ticks()
  %rest_time = sub i64 %rest_now, %rest_start
  %paid = lshr i64 %rest_time, 1
  %debt_left = sub i64 %debt, %paid
  %to_do = sub i64 %number, %rested
  %is_rested = icmp eq i64 %to_do, 0
  br i1 %is_rested, label %pay, label %rest_on

rest_on:
  %per_piece = udiv i64 %paid, %rested
  %won = mul i64 %per_piece, %to_do
  %is_more = icmp sgt i64 %won, %debt_left
  %is_one = icmp eq i64 %to_do, 1
  %is_not_one = xor i1 %is_one, true
  %is_worth_it = and i1 %is_more, %is_not_one
  br i1 %is_worth_it, label %share_rest, label %rest_piece

pay:
  %is_paid = icmp slt i64 %debt_left, 0
  %new_debt = select i1 %is_paid, i64 0, i64 %debt_left
  store atomic i64 %new_debt, ptr %debt_place monotonic, align 8
  br label %end

share_rest:
  %rest_is_paid = icmp slt i64 %debt_left, 0
  %rest_debt = select i1 %rest_is_paid, i64 0, i64 %debt_left
  store atomic i64 %rest_debt, ptr %debt_place monotonic, align 8
  %rest_offset = mul i64 %rested, $piece_bytes$
  %rest_pieces = getelementptr i8, ptr %pieces, i64 %rest_offset
  br label %try

try:
  %shared = phi ptr [ %pieces, %share ], [ %rest_pieces, %share_rest ]
  %count = phi i64 [ %number, %share ], [ %to_do, %share_rest ]
  %free = cmpxchg ptr %busy, i64 0, i64 1 acquire monotonic
  %is_ours = extractvalue { i64, i1 } %free, 1
  br i1 %is_ours, label %publish, label %alone

alone:
  %index = phi i64 [ 0, %try ], [ %following, %alone ]
  call void @compute_piece(ptr %shared, i64 %index)
  %following = add i64 %index, 1
  %more = icmp ult i64 %following, %count
  br i1 %more, label %alone, label %end

publish:
  %start = call i64 @ticks()
  store ptr %shared, ptr %published, align 8
  store atomic i64 0, ptr %done monotonic, align 8
  %new_ticket = shl i64 %count, 40
  store atomic i64 %new_ticket, ptr %pool seq_cst, align 8
  %limit_place = getelementptr i8, ptr %pool, i64 $at_most_debt$
  %limit = load i64, ptr %limit_place, align 8
  %has_no_ticks = icmp eq i64 %limit, 0
  %last_place = getelementptr i8, ptr %pool, i64 $at_last_end$
  %row_place = getelementptr i8, ptr %pool, i64 $at_in_a_row$
  %last_end = load i64, ptr %last_place, align 8
  %row_before = load i64, ptr %row_place, align 8
  %pause = sub i64 %start, %last_end
  %spinning_time = udiv i64 %limit, $spinning_share$
  %is_soon = icmp ult i64 %pause, %spinning_time
  %row_after = add i64 %row_before, 1
  %row = select i1 %is_soon, i64 %row_after, i64 0
  %is_row = icmp uge i64 %row, $calls_in_a_row$
  %new_row = select i1 %is_row, i64 0, i64 %row
  store i64 %new_row, ptr %row_place, align 8
  %wakes_at_once = or i1 %is_row, %has_no_ticks
  br i1 %wakes_at_once, label %wake_all, label %take

wake_all:
  %others = sub i64 %count, 1
  call void @wake_workers(ptr %pool, i64 %others)
  br label %take

; Workers that are awake find the pieces themselves. One that sleeps is woken when the rest takes long enough.
take:
  %own = phi i64 [ 0, %publish ], [ 0, %wake_all ], [ %own_more, %weigh_waking ], [ %own_more, %wake_some ]
  %are_woken = phi i1 [ false, %publish ], [ true, %wake_all ], [ %are_woken, %weigh_waking ], [ true, %wake_some ]
  %took = call i1 @take_piece(ptr %pool, i64 1)
  %own_more = add i64 %own, 1
  br i1 %took, label %weigh_waking, label %wait

weigh_waking:
  %now = call i64 @ticks()
  %time_so_far = sub i64 %now, %start
  %time_of_one = udiv i64 %time_so_far, %own_more
  %ticket_now = load atomic i64, ptr %pool monotonic, align 8
  %front_now = and i64 %ticket_now, 1048575
  %back_shifted = lshr i64 %ticket_now, 20
  %back_now = and i64 %back_shifted, 1048575
  %taken_now = add i64 %front_now, %back_now
  %left_now = call i64 @llvm.usub.sat.i64(i64 %count, i64 %taken_now)
  %time_left = mul i64 %time_of_one, %left_now
  %least_time = udiv i64 %limit, $waking_share$
  %is_slow = icmp ugt i64 %time_left, %least_time
  %are_asleep = xor i1 %are_woken, true
  %wakes_now = and i1 %is_slow, %are_asleep
  br i1 %wakes_now, label %wake_some, label %take

wake_some:
  call void @wake_workers(ptr %pool, i64 %left_now)
  br label %take

wait:
  %own_end = call i64 @ticks()
  %own_time = sub i64 %own_end, %start
  br label %wait_more

wait_more:
  %slept_once = phi i1 [ false, %wait ], [ true, %sleep_now ]
  %spins = load i64, ptr %spins_place, align 8
  br label %spin

spin:
  %spun = phi i64 [ 0, %wait_more ], [ %spun_more, %spin_on ]
  %count_done = load atomic i64, ptr %done acquire, align 8
  %is_done = icmp eq i64 %count_done, %count
  br i1 %is_done, label %leave_awake, label %spin_on

leave_awake:
  br i1 %slept_once, label %lost, label %leave

spin_on:
  $pause$
  %spun_more = add i64 %spun, 1
  %spins_left = icmp ult i64 %spun_more, %spins
  br i1 %spins_left, label %spin, label %sleep

sleep:
  %ignored = atomicrmw xchg ptr %waiting, i64 1 seq_cst
  %count_then = load atomic i64, ptr %done seq_cst, align 8
  %is_done_then = icmp eq i64 %count_then, %count
  br i1 %is_done_then, label %take_back, label %sleep_now

take_back:
  %was_waiting = atomicrmw xchg ptr %waiting, i64 0 seq_cst
  %nobody_wakes_us = icmp eq i64 %was_waiting, 1
  br i1 %nobody_wakes_us, label %lost, label %sleep_now

sleep_now:
  %slept = call i32 %acquire(ptr %finished, i32 1)
  br label %wait_more

; What the call took longer than its caller alone would have: that and the debt from before, up to a limit.
lost:
  %did_none = icmp eq i64 %own, 0
  br i1 %did_none, label %leave, label %weigh

weigh:
  %end_time = call i64 @ticks()
  %whole_time = sub i64 %end_time, %start
  %time_of_piece = udiv i64 %own_time, %own
  %alone_time = mul i64 %time_of_piece, %count
  %loss = sub i64 %whole_time, %alone_time
  %is_loss = icmp sgt i64 %loss, 0
  br i1 %is_loss, label %owe, label %leave

owe:
  %debt_before = load atomic i64, ptr %debt_place monotonic, align 8
  %sum = add i64 %debt_before, %loss
  %is_over = icmp ugt i64 %sum, %limit
  %debt_now = select i1 %is_over, i64 %limit, i64 %sum
  store atomic i64 %debt_now, ptr %debt_place monotonic, align 8
  br label %leave

leave:
  %leave_time = call i64 @ticks()
  store i64 %leave_time, ptr %last_place, align 8
  store atomic i64 0, ptr %busy release, align 8
  br label %end

end:
  ret void

work:
  %own_offset = mul i64 %number, $worker_bytes$
  %own_state = getelementptr i8, ptr %states, i64 %own_offset
  %own_lock_place = getelementptr i8, ptr %own_state, i64 $at_lock$
  %own_lock = load ptr, ptr %own_lock_place, align 8
  br label %idle

idle:
  %patience = load i64, ptr %spins_place, align 8
  br label %idle_spin

idle_spin:
  %idle_turns = phi i64 [ 0, %idle ], [ %more_idle_turns, %idle_pause ]
  %has_some = call i1 @has_work(ptr %pool, i64 %number)
  br i1 %has_some, label %assist, label %idle_pause

idle_pause:
  $pause$
  %more_idle_turns = add i64 %idle_turns, 1
  %stays_awake = icmp ult i64 %more_idle_turns, %patience
  br i1 %stays_awake, label %idle_spin, label %tired

assist:
  %assisted = call i1 @take_piece(ptr %pool, i64 1048576)
  br label %idle

tired:
  %ends = load i64, ptr %ends_place, align 8
  %returns = icmp eq i64 %ends, 1
  br i1 %returns, label %report, label %fall_asleep

report:
  %report_time = call i64 @ticks()
  store i64 %report_time, ptr %debt_place, align 8
  br label %end

fall_asleep:
  %ignored_too = atomicrmw xchg ptr %own_state, i64 1 seq_cst
  %has_more = call i1 @has_work(ptr %pool, i64 %number)
  br i1 %has_more, label %stay_awake, label %asleep

stay_awake:
  %was_asleep = atomicrmw xchg ptr %own_state, i64 0 seq_cst
  %nobody_wakes = icmp eq i64 %was_asleep, 1
  br i1 %nobody_wakes, label %assist, label %asleep

asleep:
  %woken_by = call i32 %acquire(ptr %own_lock, i32 1)
  %callers = load atomic i64, ptr %processor_place monotonic, align 8
  call void @allow_processor(ptr %pool, i64 0, i64 %callers, i64 -1)
  br label %idle
}

; Wake so many workers at most, if they sleep.
define internal void @wake_workers(ptr %pool, i64 %most) nounwind {
entry:
  %workers_place = getelementptr i8, ptr %pool, i64 $at_workers$
  %release_place = getelementptr i8, ptr %pool, i64 $at_release$
  %processor_place = getelementptr i8, ptr %pool, i64 $at_processor$
  %states = getelementptr i8, ptr %pool, i64 $at_states$
  %release = load ptr, ptr %release_place, align 8
  %workers = load atomic i64, ptr %workers_place monotonic, align 8
  %count = call i64 @llvm.umin.i64(i64 %workers, i64 %most)
  br label %each

each:
  %worker = phi i64 [ 0, %entry ], [ %next, %check ], [ %next, %claim ], [ %next, %wake ]
  %is_left = icmp ult i64 %worker, %count
  br i1 %is_left, label %check, label %end

check:
  %offset = mul i64 %worker, $worker_bytes$
  %state_place = getelementptr i8, ptr %states, i64 %offset
  %next = add i64 %worker, 1
  %state = load atomic i64, ptr %state_place seq_cst, align 8
  %sleeps = icmp eq i64 %state, 1
  br i1 %sleeps, label %claim, label %each

claim:
  %before = atomicrmw xchg ptr %state_place, i64 0 seq_cst
  %is_claimed = icmp eq i64 %before, 1
  br i1 %is_claimed, label %wake, label %each

wake:
  %processor = call i64 @processor(ptr %pool)
  store atomic i64 %processor, ptr %processor_place monotonic, align 8
  %thread_place = getelementptr i8, ptr %state_place, i64 $at_thread$
  %thread = load i64, ptr %thread_place, align 8
  call void @allow_processor(ptr %pool, i64 %thread, i64 %processor, i64 0)
  %lock_place = getelementptr i8, ptr %state_place, i64 $at_lock$
  %lock = load ptr, ptr %lock_place, align 8
  call void %release(ptr %lock)
  br label %each

end:
  ret void
}

; The time, in a unit of the processor's; 0 where it is not known.
define internal i64 @ticks() nounwind {
entry:
  %now = $ticks$
  ret i64 %now
}

define internal i64 @processor(ptr %pool) nounwind {
entry:
  %place = getelementptr i8, ptr %pool, i64 $at_processor_of$
  %function = load ptr, ptr %place, align 8
  %is_known = icmp ne ptr %function, null
  br i1 %is_known, label %ask, label %unknown

ask:
  %number = call i32 %function()
  %wide = sext i32 %number to i64
  ret i64 %wide

unknown:
  ret i64 -1
}

; Allow a thread the processors of this one, and one of them only if the last argument is -1, not if it is 0.
define internal void @allow_processor(ptr %pool, i64 %thread, i64 %number, i64 %wanted) nounwind {
entry:
  %allowed_place = getelementptr i8, ptr %pool, i64 $at_allowed$
  %allow_place = getelementptr i8, ptr %pool, i64 $at_allow$
  %set = alloca [$set_words$ x i64], align 8
  %is_in_set = icmp ult i64 %number, $most_processors$
  br i1 %is_in_set, label %read, label %end

read:
  %allowed = load ptr, ptr %allowed_place, align 8
  %allow = load ptr, ptr %allow_place, align 8
  %failed = call i32 %allowed(i32 0, i64 $set_bytes$, ptr %set)
  %is_read = icmp eq i32 %failed, 0
  br i1 %is_read, label %change, label %end

change:
  %word = lshr i64 %number, 6
  %word_place = getelementptr i64, ptr %set, i64 %word
  %before = load i64, ptr %word_place, align 8
  %in_word = and i64 %number, 63
  %bit = shl i64 1, %in_word
  %others = xor i64 %bit, -1
  %without = and i64 %before, %others
  %with = and i64 %wanted, %bit
  %after = or i64 %without, %with
  store i64 %after, ptr %word_place, align 8
  %thread_number = trunc i64 %thread to i32
  %ignored = call i32 %allow(i32 %thread_number, i64 $set_bytes$, ptr %set)
  br label %end

end:
  ret void
}

define internal void @compute_piece(ptr %pieces, i64 %index) nounwind {
entry:
  %piece = getelementptr { ptr, ptr, i64, i64 }, ptr %pieces, i64 %index
  %arguments_place = getelementptr i8, ptr %piece, i64 8
  %first_place = getelementptr i8, ptr %piece, i64 16
  %last_place = getelementptr i8, ptr %piece, i64 24
  %kernel = load ptr, ptr %piece, align 8
  %arguments = load ptr, ptr %arguments_place, align 8
  %first = load i64, ptr %first_place, align 8
  %last = load i64, ptr %last_place, align 8
  call void %kernel(ptr %arguments, i64 %first, i64 %last)
  ret void
}

define internal i1 @has_work(ptr %pool, i64 %number) nounwind {
entry:
  %workers_place = getelementptr i8, ptr %pool, i64 $at_workers$
  %ticket = load atomic i64, ptr %pool seq_cst, align 8
  %count = lshr i64 %ticket, 40
  %from_front = and i64 %ticket, 1048575
  %shifted = lshr i64 %ticket, 20
  %from_back = and i64 %shifted, 1048575
  %taken = add i64 %from_front, %from_back
  %is_left = icmp ult i64 %taken, %count
  %workers = load atomic i64, ptr %workers_place monotonic, align 8
  %may_help = icmp ult i64 %number, %workers
  %both = and i1 %is_left, %may_help
  ret i1 %both
}

define internal i1 @take_piece(ptr %pool, i64 %step) nounwind {
entry:
  %ticket = atomicrmw add ptr %pool, i64 %step acq_rel
  %count = lshr i64 %ticket, 40
  %from_front = and i64 %ticket, 1048575
  %shifted = lshr i64 %ticket, 20
  %from_back = and i64 %shifted, 1048575
  %taken = add i64 %from_front, %from_back
  %is_left = icmp ult i64 %taken, %count
  br i1 %is_left, label %take, label %none

take:
  %pieces_place = getelementptr i8, ptr %pool, i64 $at_pieces$
  %pieces = load ptr, ptr %pieces_place, align 8
  %last_piece = sub i64 %count, 1
  %back = sub i64 %last_piece, %from_back
  %is_caller = icmp eq i64 %step, 1
  %index = select i1 %is_caller, i64 %from_front, i64 %back
  call void @compute_piece(ptr %pieces, i64 %index)
  %done = getelementptr i8, ptr %pool, i64 $at_done$
  %before = atomicrmw add ptr %done, i64 1 seq_cst
  %after = add i64 %before, 1
  %is_last = icmp eq i64 %after, %count
  br i1 %is_last, label %last, label %took

last:
  %waiting = getelementptr i8, ptr %pool, i64 $at_waiting$
  %waits = atomicrmw xchg ptr %waiting, i64 0 seq_cst
  %is_asleep = icmp eq i64 %waits, 1
  br i1 %is_asleep, label %wake_caller, label %took

wake_caller:
  %finished_place = getelementptr i8, ptr %pool, i64 $at_finished$
  %release_place = getelementptr i8, ptr %pool, i64 $at_release$
  %finished = load ptr, ptr %finished_place, align 8
  %release = load ptr, ptr %release_place, align 8
  call void %release(ptr %finished)
  br label %took

took:
  ret i1 1

none:
  ret i1 0
}
