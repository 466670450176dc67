package com.example.orders;

import com.sun.net.httpserver.Headers;
import java.util.concurrent.ThreadLocalRandom;

/** Which requests are profiled, decided once when they come in: a flag from outside, or the dice. */
final class HeadSampling {
    /** 1 % unless PROFILE_SHARE says otherwise. */
    private static final double SHARE = Double.parseDouble(System.getenv().getOrDefault("PROFILE_SHARE", "0.01"));

    private HeadSampling() {}

    static boolean isChosen(Headers headers) {
        return headers.containsKey("X-Profile") || ThreadLocalRandom.current().nextDouble() < SHARE;
    }
}
