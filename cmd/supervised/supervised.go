package supervised

import (
	"context"
	"net"
	"os"
	"strconv"
	"time"
)

// Service is how this process is supervised.
type Service struct {
	socket   string        // "": not by systemd
	watchdog time.Duration // in which a sign of life is due; 0: none is
}

// Open reads the environment, and removes it for children.
func Open() Service {
	s := Service{socket: os.Getenv("NOTIFY_SOCKET")}
	micros, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err == nil && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		s.watchdog = time.Duration(micros) * time.Microsecond
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		_ = os.Unsetenv(name)
	}
	return s
}

// Ready tells that the service has started.
func (s Service) Ready() { s.tell("READY=1") }

// Stopping tells that the service ends by order.
func (s Service) Stopping() { s.tell("STOPPING=1") }

// Watch gives signs of life until ctx ends, as long as working returns true: it asks the main loop,
// and returns false if that does not answer before its context ends.
func (s Service) Watch(ctx context.Context, working func(context.Context) bool) {
	if s.socket == "" || s.watchdog <= 0 {
		return
	}
	every := s.watchdog / 4
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, every)
		if working(asking) {
			s.tell("WATCHDOG=1")
		}
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tell sends one message. systemd that does not take it is no reason to stop.
func (s Service) tell(state string) {
	if s.socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: s.socket, Net: "unixgram"})
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }() // the message was sent, or not
	_, _ = conn.Write([]byte(state))
}
