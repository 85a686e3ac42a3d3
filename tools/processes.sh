# Sourced by the scripts beside it, for clusters of processes on this machine. `started` holds the processes that the script must stop; `stop_all_at_exit` sees to it, also after Ctrl-C.
started=()

stop_all() {
  trap - EXIT INT TERM HUP
  (( ${#started[@]} )) || return 0
  kill "${started[@]}" 2>/dev/null || true
  for _ in {1..50}; do # five seconds to stop by themselves
    kill -0 "${started[@]}" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL "${started[@]}" 2>/dev/null || true
  wait "${started[@]}" 2>/dev/null || true
}

stop_all_at_exit() {
  trap stop_all EXIT
  trap 'stop_all; exit 130' INT TERM HUP
}

# Says who listens on a port, as far as this user may know; nothing when nobody does.
listener() {
  local inode pid
  inode=$(awk -v port="$(printf ':%04X$' "$1")" '$2 ~ port && $4 == "0A" { print $10; exit }' /proc/net/tcp /proc/net/tcp6 2>/dev/null)
  [[ $inode ]] || return 0
  pid=$(find /proc/[0-9]*/fd -lname "socket:\[$inode\]" 2>/dev/null | awk -F/ 'NR == 1 { print $3 }') || true
  if [[ $pid ]]; then echo "$(<"/proc/$pid/comm") (process $pid)"; else echo "another user's process"; fi
}

# Ends the script when one of COUNT ports from FIRST on is taken: need_ports FIRST COUNT
need_ports() {
  local port who
  for (( port = $1; port < $1 + $2; ++port )); do
    who=$(listener "$port")
    [[ -z $who ]] || { echo "$0: port $port is taken by $who; stop it and run this again" >&2; exit 1; }
  done
}

# Prints so many ports that are free at this moment.
free_ports() { python3 -c "import socket; s = [socket.create_server(('127.0.0.1', 0)) for _ in range($1)]; print(*(x.getsockname()[1] for x in s))"; }

# Runs a program in the background, its output in a file, and waits until it says that it serves: start_server LOG COMMAND...
start_server() {
  local log=$1
  shift
  : >"$log"
  "$@" >"$log" 2>&1 &
  started+=($!)
  for _ in {1..100}; do
    grep -qs serves "$log" && { grep -m1 serves "$log"; return 0; }
    kill -0 "${started[-1]}" 2>/dev/null || break
    sleep 0.1
  done
  echo "$0: '$*' did not start:" >&2
  cat "$log" >&2
  exit 1
}
