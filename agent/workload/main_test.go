package workload

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// playVar makes this test binary a workload that behaves in one of these ways.
const playVar = "LEASEHOLD_TEST_PLAY"

func TestMain(m *testing.M) {
	if role := os.Getenv(playVar); role != "" {
		play(role)
	}
	goleak.VerifyTestMain(m)
}

func play(role string) {
	switch role {
	case "fail":
		fmt.Println("about to fail")
		fmt.Fprintln(os.Stderr, "for a reason")
		os.Exit(3)
	case "serve":
		fmt.Println("ready")
		<-time.After(time.Hour)
	case "orderly":
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		fmt.Println("ready")
		<-asked
		fmt.Println("ended in order")
		os.Exit(0)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		<-time.After(time.Hour)
	case "family", "orphans":
		// A child in the same group, which does not care when its parent ends.
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), playVar+"=stubborn")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			panic(err)
		}
		fmt.Printf("child %d\n", child.Process.Pid)
		if role == "orphans" {
			os.Exit(1)
		}
		<-time.After(time.Hour)
	case "shout":
		line := strings.Repeat("x", 1023) + "\n"
		for range 4 << 10 { // 4 MiB
			fmt.Print(line)
		}
		fmt.Println("ready")
		<-time.After(time.Hour)
	case "look":
		dir, _ := os.Getwd()
		fmt.Println("dir", dir)
		for _, kv := range os.Environ() {
			fmt.Println("env", kv)
		}
		for _, arg := range os.Args[1:] {
			fmt.Println("arg", arg)
		}
		os.Exit(0)
	}
	panic("no such role: " + role)
}
