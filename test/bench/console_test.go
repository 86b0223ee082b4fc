package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The pages are loaded as by one browser that signed in with the printed link.
func TestPagesAreLoadedWhenSignedIn(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "bench", r.UserAgent())
		if r.URL.Path == "/console/enter" {
			assert.Equal(t, "secret", r.FormValue("token"))
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "1", Path: "/console/"})
			http.Redirect(w, r, "/console/", http.StatusSeeOther)
			return
		}
		if _, err := r.Cookie("session"); err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch {
		case r.URL.Path == "/console/busy":
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.Method == http.MethodPost && r.FormValue("csrf") != "form":
			w.WriteHeader(http.StatusForbidden)
		case r.Method == http.MethodPost:
			http.Redirect(w, r, "/console/found", http.StatusSeeOther)
		default:
			fmt.Fprint(w, `<input name="csrf" value="form"><a href="/console/sale/0a-1b">a sale</a>`)
		}
	}))
	defer server.Close()
	log := filepath.Join(t.TempDir(), "serve.log")
	require.NoError(t, os.WriteFile(log, []byte("serving\nconsole: "+server.URL+"/console/enter?token=secret\n"), 0o600))

	v, err := signIn(t.Context(), log)
	require.NoError(t, err)
	pages, err := v.pages(t.Context())
	require.NoError(t, err)
	for _, p := range pages {
		_, err := v.load(t.Context(), p)
		require.NoError(t, err, p.name)
	}
	_, err = v.load(t.Context(), page{path: v.home + "busy"})
	require.ErrorIs(t, err, errBusyConsole)

	ctx, stop := context.WithTimeout(t.Context(), shortRun)
	defer stop()
	surfed := v.surf(ctx, pages)
	require.NoError(t, surfed.err)
	require.NotEmpty(t, surfed.times)
}
