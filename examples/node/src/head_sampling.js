// Which requests are profiled, decided once when they come in: a flag from outside, or the dice.

// 1 % unless PROFILE_SHARE says otherwise.
const given = Number(process.env.PROFILE_SHARE ?? 0.01);
const profileShare = given >= 0 && given <= 1 ? given : 0.01;

export function isChosen(request) {
  return request.headers['x-profile'] !== undefined || Math.random() < profileShare;
}
