/* Run it where the data are; each answer is shown beside the expected one. */

%xpt2loc(libref=work, filespec=«file»);

proc sql;
  create table @constants (@p num, @stray num);
  insert into @constants values (@retention, «rate»);
