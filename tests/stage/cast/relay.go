package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"
)

// relay takes connections and passes on what is said, both ways. Stopped, it is a network that has gone silent: the kernel takes
// bytes and connections, and nothing arrives. With a delay it is a slow network, and one that loses: what is lost arrives
// when TCP would have sent it again, and so does all that is behind it.
func relay(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("relay", flag.ContinueOnError)
	from := flags.String("from", "", "where it listens")
	to := flags.String("to", "", "where it leads")
	delay := flags.Duration("delay", 0, "how long everything takes, each way")
	jitter := flags.Duration("jitter", 0, "how much longer it may take")
	loss := flags.Float64("loss", 0, "of all that is said, so much is said again")
	if err := flags.Parse(args); err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", *from)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	fmt.Fprintln(os.Stdout, "ready")
	way := road{delay: *delay, jitter: *jitter, loss: *loss}
	for {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept: %w", err)
		}
		go way.lead(ctx, c, *to)
	}
}

// road is how a network behaves.
type road struct {
	delay, jitter time.Duration
	loss          float64
}

// retransmit is how long TCP waits at first before it says something again; it doubles.
const retransmit = 200 * time.Millisecond

func (r road) lead(ctx context.Context, in net.Conn, to string) {
	defer in.Close()
	out, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	var both sync.WaitGroup
	pass := func(dst, src net.Conn) {
		_ = r.pass(dst, src) // whoever is at the other end hears of it
		_ = dst.Close()
		_ = src.Close()
	}
	both.Go(func() { pass(out, in) })
	both.Go(func() { pass(in, out) })
	both.Wait()
}

// parcel is what was said at once.
type parcel struct {
	due  time.Time
	data []byte
}

func (r road) pass(dst, src net.Conn) error {
	if r.delay == 0 {
		_, err := io.Copy(dst, src)
		return err
	}
	under := make(chan parcel, 1024)
	go func() {
		defer close(under)
		last := time.Now()
		for {
			data := make([]byte, 16<<10)
			n, err := src.Read(data)
			if err != nil {
				return
			}
			due := time.Now().Add(r.takes())
			if due.Before(last) {
				due = last // TCP delivers in order
			}
			last = due
			under <- parcel{due, data[:n]}
		}
	}()
	var err error
	for p := range under {
		if err != nil {
			continue
		}
		<-time.After(time.Until(p.due))
		if _, err = dst.Write(p.data); err != nil {
			_ = src.Close()
		}
	}
	return err
}

func (r road) takes() time.Duration {
	d := r.delay + time.Duration(rand.Float64()*float64(r.jitter))
	for again := retransmit; rand.Float64() < r.loss; again *= 2 {
		d += again
	}
	return d
}
