package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
)

// profileShare is the share of requests whose samples name their spans: 1 % unless PROFILE_SHARE says otherwise.
var profileShare = func() float64 {
	share, err := strconv.ParseFloat(setting("PROFILE_SHARE", "0.01"), 64)
	if err != nil || share < 0 || share > 1 {
		return 0.01
	}
	return share
}()

// isChosen decides once, when the request comes in: a flag from outside, or the dice.
func isChosen(r *http.Request) bool {
	return r.Header.Get("X-Profile") != "" || rand.Float64() < profileShare
}

type chosenKey struct{}

func markChosen(ctx context.Context) context.Context { return context.WithValue(ctx, chosenKey{}, true) }

func isMarkedChosen(ctx context.Context) bool { return ctx.Value(chosenKey{}) != nil }
