package stack

import (
	"context"
	"errors"
	"net"
	"strconv"
)

// freePort asks the system for a port of 127.0.0.1 that nobody listens on now. A
// service keeps it over its restarts: others have its address.
func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("the listener has no TCP address")
	}
	return addr.Port, nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
