// Command web is the workload of the machines that tests/detect harms: a web server that says
// whether it is healthy, and can be told to fail or to hang.
//
//	web PORT DIR
//
// While there is a file called fail in DIR it answers 503, and while there is one called hang it
// does not answer.
package main

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

func main() {
	if err := serve(os.Args); err != nil {
		panic(err)
	}
}

func serve(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: web PORT DIR")
	}
	told := func(what string) bool {
		_, err := os.Stat(filepath.Join(args[2], what))
		return !errors.Is(err, fs.ErrNotExist)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if told("hang") {
			<-r.Context().Done()
		}
		if told("fail") {
			http.Error(w, "told to fail", http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Addr: "127.0.0.1:" + args[1], Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	return server.ListenAndServe()
}
