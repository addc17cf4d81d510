package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/orchestrator/dashboard"
)

// listen opens the page's address. A port that is taken is no reason to stop: the
// page then gets a free one.
func (s *shop) listen(ctx context.Context) (net.Listener, error) {
	host, _, err := net.SplitHostPort(s.opts.Listen)
	if err != nil {
		return nil, catalog.Invalidf(catalog.CodeUsage, "--listen", "write it as 127.0.0.1:7788", "%q is no address", s.opts.Listen)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.opts.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		l, err = lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return nil, catalog.Invalidf(catalog.CodeUsage, "--listen", "give another address, such as 127.0.0.1:0", "the page cannot be served: %w", err)
	}
	return l, nil
}

func (s *shop) serve(ctx context.Context, l net.Listener) error {
	pages := dashboard.New(dashboard.FromRegistry(s.registry, time.Now))
	server := &http.Server{Handler: pages, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(grace) != nil {
			_ = server.Close()
		}
	})
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}
