"""The script that goes with an export: in the language of the program that reads the file."""

from __future__ import annotations

from pathlib import Path

from reconpriv.release.export import Script, program_of, script_path
from reconpriv.release.export_design import DesignedRecords
from reconpriv.release.export_names import file_names
from reconpriv.release.manifest import Manifest
from reconpriv.release.scripts.base import Answer, Setting
from reconpriv.release.scripts.r import r_script
from reconpriv.release.scripts.sas import sas_script
from reconpriv.release.scripts.spss import spss_script
from reconpriv.release.scripts.stata import stata_script

_WRITERS = {"R": r_script, "SAS": sas_script, "SPSS": spss_script, "Stata": stata_script}


def export_script(
    path: Path, records: DesignedRecords, manifest: Manifest, answers: tuple[Answer, ...]
) -> Script:
    """A script that counts in the file as the release does."""
    program, script = program_of(path), script_path(path)
    columns = records.table.column_names
    setting = Setting(
        data=path.name,
        script=script.name,
        sensitive=manifest.schema.sensitive,
        retention=manifest.policy.retention,
        domain_size=manifest.schema.domain_size,
        design=records.names,
        names={name: name for name in columns} if program == "R" else file_names(columns, program),
        labels={name: said.title for name, said in records.labels.items() if said.title},
        pooled=manifest.pooled,
        margins=manifest.margins is not None,
        answers=answers,
    )
    return Script(script, _WRITERS[program](setting))
