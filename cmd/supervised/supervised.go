package supervised

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

// Service is the supervision of this process. The zero value is not supervised.
type Service struct {
	tell     func(state string) // nil: not supervised
	watchdog time.Duration      // interval in which a sign of life is due; 0: none is
	environ  []string           // variables that Open removed
}

// Open reads systemd's environment at its first call, and removes it for children.
var Open = sync.OnceValue(open)

func open() Service {
	var s Service
	if socket := os.Getenv("NOTIFY_SOCKET"); socket != "" {
		s.tell = func(state string) { send(socket, state) }
	}
	micros, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err == nil && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		s.watchdog = time.Duration(micros) * time.Microsecond
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		if value, set := os.LookupEnv(name); set {
			s.environ = append(s.environ, name+"="+value)
		}
		_ = os.Unsetenv(name)
	}
	return s
}

// Environ returns the variables that Open removed, so that a program that this process becomes by
// exec is supervised too.
func (s Service) Environ() []string { return s.environ }

// Part returns the supervision of one process of a service, whose supervisor wants a sign of life
// at least this often.
func Part(watchdog time.Duration, alive func()) Service {
	return Service{watchdog: watchdog, tell: func(state string) {
		if state == alives {
			alive()
		}
	}}
}

const alives = "WATCHDOG=1"

// Supervised reports whether there is a supervisor.
func (s Service) Supervised() bool { return s.tell != nil }

// Ready reports that the service has started.
func (s Service) Ready() { s.say("READY=1") }

// Stopping reports that the service was asked to end.
func (s Service) Stopping() { s.say("STOPPING=1") }

// Status reports in one line what the service does.
func (s Service) Status(text string) { s.say("STATUS=" + text) }

// Watch gives signs of life until ctx ends, as long as working returns true: it asks the main loop,
// and returns false if that does not answer before its context ends.
func (s Service) Watch(ctx context.Context, working func(context.Context) bool) {
	if s.watchdog > 0 {
		s.repeat(ctx, s.watchdog/4, alives, working)
	}
}

// Start gives signs of life as Watch does, and asks for more time to start, so that a start that
// waits for others does not count as hanging.
func (s Service) Start(ctx context.Context, working func(context.Context) bool) {
	const more = 80 * time.Second
	s.repeat(ctx, more/4, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", more.Microseconds()), working)
}

func (s Service) repeat(ctx context.Context, every time.Duration, state string, working func(context.Context) bool) {
	if s.tell == nil {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, every)
		if working(asking) {
			s.say(state)
		}
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s Service) say(state string) {
	if s.tell != nil {
		s.tell(state)
	}
}

// send sends one message. An error must not stop the service.
func send(socket, state string) {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }() // the message was sent, or not
	_, _ = conn.Write([]byte(state))
}
