* Counts from people.sav, a randomised release made by reconpriv.
* Public columns are exact, but ill is randomised: a value was kept with probability p, else
  replaced by any of the m values, so a published count must be corrected: estimate = (n - N
  (1-p) / m) / p for n of N records.
* The rp_records records of a group rest on rp_trials independent trials, each of which
  stands for rp_weight records; programs that take rows as independent give standard errors
  that are too small, but those below are right.
* For intervals that also hold for small counts, ask reconpriv query.
* At the end, three answers are compared with those of the release.
* Run it where the data are; each answer is listed beside the expected one.

GET FILE='people.sav'.
SELECT IF (town = 'L''Aquila').
COMPUTE rp_one = 1.
AGGREGATE OUTFILE=* /BREAK=rp_one /rp_count=N.
COMPUTE rp_expected = 1014.
FORMATS rp_count rp_expected (F18.0).
LIST rp_count rp_expected.

GET FILE='people.sav'.
COMPUTE rp_held = 0.
IF (ill = 'Grippe à l''ancienne') rp_held = 1.
AGGREGATE OUTFILE=* /BREAK=rp_group /rp_held=SUM(rp_held)
  /rp_size=MEAN(rp_records) /rp_n=MEAN(rp_trials) /rp_scale=MEAN(rp_weight).
COMPUTE rp_share = rp_held / rp_size.
COMPUTE rp_part = MOD(rp_size, rp_n) / rp_n.
COMPUTE rp_uneven = rp_part * (1 - rp_part) * rp_n**2 / MAX(rp_n - 1, 1) * rp_share * (1 - rp_share).
COMPUTE rp_rounding = 0.
IF (rp_n < rp_size) rp_rounding = rp_scale**2 / 6.
COMPUTE rp_scaled = rp_scale * rp_size.
COMPUTE rp_scaledheld = rp_scale * rp_held.
COMPUTE rp_one = 1.
AGGREGATE OUTFILE=* /BREAK=rp_one /rp_held=SUM(rp_held) /rp_size=SUM(rp_size) /rp_uneven=SUM(rp_uneven)
  /rp_rounding=SUM(rp_rounding) /rp_scaled=SUM(rp_scaled) /rp_scaledheld=SUM(rp_scaledheld).
COMPUTE rp_p = 0.4.
COMPUTE rp_stray = (1 - rp_p) / 5.
COMPUTE rp_keep = rp_p + rp_stray.
COMPUTE rp_holders = (rp_scaledheld - rp_stray * rp_scaled) / rp_p.
COMPUTE rp_drawn = rp_holders * (rp_keep * (1 - rp_keep) - rp_stray * (1 - rp_stray))
  + rp_scaled * rp_stray * (1 - rp_stray).
COMPUTE rp_count = (rp_held - rp_stray * rp_size) / rp_p.
COMPUTE rp_se = SQRT((MAX(rp_drawn, 0) + rp_uneven) / rp_p**2 + rp_rounding).
COMPUTE rp_expected = 950.0.
COMPUTE rp_expected_se = 52.66587717.
FORMATS rp_count rp_expected rp_se rp_expected_se (F18.4).
LIST rp_count rp_expected rp_se rp_expected_se.

GET FILE='people.sav'.
SELECT IF (town = 'L''Aquila').
COMPUTE rp_held = 0.
IF (ill = 'Grippe à l''ancienne') rp_held = 1.
AGGREGATE OUTFILE=* /BREAK=rp_group /rp_held=SUM(rp_held)
  /rp_size=MEAN(rp_records) /rp_n=MEAN(rp_trials) /rp_scale=MEAN(rp_weight).
COMPUTE rp_share = rp_held / rp_size.
COMPUTE rp_part = MOD(rp_size, rp_n) / rp_n.
COMPUTE rp_uneven = rp_part * (1 - rp_part) * rp_n**2 / MAX(rp_n - 1, 1) * rp_share * (1 - rp_share).
COMPUTE rp_rounding = 0.
IF (rp_n < rp_size) rp_rounding = rp_scale**2 / 6.
COMPUTE rp_scaled = rp_scale * rp_size.
COMPUTE rp_scaledheld = rp_scale * rp_held.
COMPUTE rp_one = 1.
AGGREGATE OUTFILE=* /BREAK=rp_one /rp_held=SUM(rp_held) /rp_size=SUM(rp_size) /rp_uneven=SUM(rp_uneven)
  /rp_rounding=SUM(rp_rounding) /rp_scaled=SUM(rp_scaled) /rp_scaledheld=SUM(rp_scaledheld).
COMPUTE rp_p = 0.4.
COMPUTE rp_stray = (1 - rp_p) / 5.
COMPUTE rp_keep = rp_p + rp_stray.
COMPUTE rp_holders = (rp_scaledheld - rp_stray * rp_scaled) / rp_p.
COMPUTE rp_drawn = rp_holders * (rp_keep * (1 - rp_keep) - rp_stray * (1 - rp_stray))
  + rp_scaled * rp_stray * (1 - rp_stray).
COMPUTE rp_count = (rp_held - rp_stray * rp_size) / rp_p.
COMPUTE rp_se = SQRT((MAX(rp_drawn, 0) + rp_uneven) / rp_p**2 + rp_rounding).
COMPUTE rp_expected = 650.8.
COMPUTE rp_expected_se = 46.72959039.
FORMATS rp_count rp_expected rp_se rp_expected_se (F18.4).
LIST rp_count rp_expected rp_se rp_expected_se.
