# Runs a Postgres that ends when standard input ends, which is when the process
# that holds the other end of the pipe stops it or dies.
#
#   sh -c "$script" sh REMOVE COMMAND...
#
# Standard output gets the server's process id; all else goes to standard error.
# Descriptor 3, when open, is the lock of the data directory: the server's
# processes inherit it, so the lock is free only when the last of them is gone.
# Descriptor 4, when open, is the data directory itself, for a server that may not
# go there by its path.
remove=$1
shift

exec 5<&0
"$@" </dev/null >&2 5<&- &
server=$!
(
	exec >&2
	read -r _ <&5
	# Repeated, because a server that is just starting still ignores the signal.
	# INT asks for a fast shutdown, which waits for replication clients: one that
	# hangs is not waited for longer than 15 seconds.
	n=0
	while kill -INT "$server" 2>/dev/null; do
		n=$((n + 1))
		if [ "$n" -gt 75 ]; then kill -QUIT "$server" 2>/dev/null; fi
		sleep 0.2
	done
) 3<&- 4<&- &
watcher=$!
exec 5<&-
echo "$server"
exec >&2

wait "$server"
status=$?
kill "$watcher" 2>/dev/null
if [ -n "$remove" ]; then cd / && rm -rf -- "$remove"; fi
exit "$status"
