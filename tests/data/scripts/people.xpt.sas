/* Counts from people.xpt, a randomised release made by reconpriv. */
/* Public columns are exact, but ill is randomised: a value was kept with probability p, else
   replaced by any of the m values, so a published count must be corrected: estimate = (n - N
   (1-p) / m) / p for n of N records. */
/* The rp_records records of a group rest on rp_trials independent trials, each of which
   stands for rp_weight records; programs that take rows as independent give standard errors
   that are too small, but those below are right. */
/* For intervals that also hold for small counts, ask reconpriv query. */
/* At the end, three answers are compared with those of the release. */
/* Run it where the data are; each answer is shown beside the expected one. */

%xpt2loc(libref=work, filespec='people.xpt');

proc sql;
  create table rp_constants (rp_p num, rp_stray num);
  insert into rp_constants values (0.4, 0.12);

  select count(*) as answer, 1014 as expected from work.dataset where town = 'L''Aquila';

  create table rp_groups as
    select rp_group, sum(ill = 'Grippe à l''ancienne') as rp_held,
      max(rp_records) as rp_records, max(rp_trials) as rp_trials,
      max(rp_weight) as rp_weight
    from work.dataset group by rp_group;
  create table rp_sums as
    select sum(rp_held) as held, sum(rp_records) as size,
      sum(rp_weight * rp_held) as scaled_held, sum(rp_weight * rp_records) as scaled,
      sum(mod(rp_records, rp_trials) / rp_trials * (1 - mod(rp_records, rp_trials) / rp_trials)
        * rp_trials * rp_trials / max(rp_trials - 1, 1)
        * rp_held / rp_records * (1 - rp_held / rp_records)) as uneven,
      sum(case when rp_trials < rp_records then rp_weight * rp_weight / 6 else 0 end) as rounding
    from rp_groups;
  create table rp_corrected as
    select (held - rp_stray * size) / rp_p as answer,
      sqrt((max((scaled_held - rp_stray * scaled) / rp_p
        * ((rp_p + rp_stray) * (1 - rp_p - rp_stray) - rp_stray * (1 - rp_stray))
        + scaled * rp_stray * (1 - rp_stray), 0) + uneven) / (rp_p * rp_p) + rounding) as standard_error
    from rp_sums, rp_constants;
  select answer, 950.0 as expected, standard_error,
    52.66587717 as expected_error from rp_corrected;
  drop table rp_groups, rp_sums, rp_corrected;

  create table rp_groups as
    select rp_group, sum(ill = 'Grippe à l''ancienne') as rp_held,
      max(rp_records) as rp_records, max(rp_trials) as rp_trials,
      max(rp_weight) as rp_weight
    from work.dataset where town = 'L''Aquila' group by rp_group;
  create table rp_sums as
    select sum(rp_held) as held, sum(rp_records) as size,
      sum(rp_weight * rp_held) as scaled_held, sum(rp_weight * rp_records) as scaled,
      sum(mod(rp_records, rp_trials) / rp_trials * (1 - mod(rp_records, rp_trials) / rp_trials)
        * rp_trials * rp_trials / max(rp_trials - 1, 1)
        * rp_held / rp_records * (1 - rp_held / rp_records)) as uneven,
      sum(case when rp_trials < rp_records then rp_weight * rp_weight / 6 else 0 end) as rounding
    from rp_groups;
  create table rp_corrected as
    select (held - rp_stray * size) / rp_p as answer,
      sqrt((max((scaled_held - rp_stray * scaled) / rp_p
        * ((rp_p + rp_stray) * (1 - rp_p - rp_stray) - rp_stray * (1 - rp_stray))
        + scaled * rp_stray * (1 - rp_stray), 0) + uneven) / (rp_p * rp_p) + rounding) as standard_error
    from rp_sums, rp_constants;
  select answer, 650.8 as expected, standard_error,
    46.72959039 as expected_error from rp_corrected;
  drop table rp_groups, rp_sums, rp_corrected;

quit;
