# Runs a service that ends when standard input ends, which is when the process that
# holds the other end of the pipe stops it or dies.
#
#   sh -c "$script" sh COMMAND...
#
# Descriptor 3 gets the service's process id.
exec 5<&0
"$@" </dev/null 3>&- 5<&- &
service=$!
(
	read -r _ <&5
	kill -KILL "$service" 2>/dev/null
) 3>&- >/dev/null 2>&1 &
watcher=$!
exec 5<&-
echo "$service" >&3
exec 3>&-
wait "$service"
status=$?
kill "$watcher" 2>/dev/null
exit "$status"
